"""Frozen dataclasses that take a tenth of the time to define.

`dataclasses.dataclass` compiles six methods of each frozen class when its module is loaded, a third of a millisecond a
class up to Python 3.12, which is a quarter of the time of a short command that loads eighty of them. Here the
constructor is compiled when the first object is made, and the other methods need no compiler. Fields are those of
`dataclasses`, whose functions take these classes, and it makes every other kind of dataclass, as always.
"""

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:

    def dataclass(cls: "type | None" = None, /, **options: bool) -> Any:
        """Define a dataclass; see `dataclasses.dataclass`, whose options it takes."""
        if options != {"frozen": True, "slots": True}:
            return dataclasses.dataclass(cls, **options)
        return _frozen if cls is None else _frozen(cls)


__all__ = ["dataclass"]


def _frozen(cls: type) -> type:
    """Return a class with slots, whose fields are compared, hashed and printed, and can't be assigned."""
    if any(dataclasses.is_dataclass(base) for base in cls.__bases__):
        return dataclasses.dataclass(frozen=True, slots=True)(cls)
    own = dict(vars(cls))
    if own.get("__hash__", ...) is None:  # as Python sets it for a class with `__eq__`
        del own["__hash__"]
    cls.__doc__ = cls.__doc__ or cls.__name__  # `dataclasses` would load a tokenizer to write one: 10 ms
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__dataclass_params__.frozen = True  # so that frozen dataclasses may inherit from it
    methods = {"__init__": _constructor(made), "__repr__": _repr, **_comparing(made), **_STATE}
    for name, method in {**methods, **{name: own[name] for name in methods if name in own}, **_guards(made)}.items():
        setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _constructor(cls: Any) -> "Callable[..., None]":
    """Return a constructor that puts a compiled one in its place when it is called first."""

    def init(self: object, *args: Any, **named: Any) -> None:
        cls.__init__ = _compiled(cls)
        cls.__init__(self, *args, **named)

    return init


def _compiled(cls: Any) -> "Callable[..., None]":
    scope: dict[str, Any] = {"_absent": object()}
    parameters, lines = ["self"], []
    for field in dataclasses.fields(cls):
        name = value = field.name
        if field.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = field.default
            parameter, otherwise = f"{name}=_default_{name}", f"_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = field.default_factory
            parameter, otherwise = f"{name}=_absent", f"_make_{name}()"
            value = f"{otherwise} if {name} is _absent else {name}"
        else:
            parameter, otherwise = name, ""
        if field.init:
            parameters.append(parameter)
        if value := value if field.init else otherwise:
            scope[f"_set_{name}"] = getattr(cls, name).__set__  # that of its slot: `object` would look it up each time
            lines.append(f" _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    # Only names of fields, which are names of Python, are in the text.
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), scope)  # noqa: S102
    compiled: Callable[..., None] = scope["__init__"]
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    return compiled


def _comparing(cls: Any) -> "dict[str, Callable[..., Any]]":
    """Return the methods that compare and hash the fields."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    get: Callable[[object], Any] = attrgetter(*names) if names else lambda _: ()
    several = len(names) > 1

    def equal(self: object, other: object) -> Any:
        if other is self:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        return get(self) == get(other) if several else (get(self),) == (get(other),)

    def hashed(self: object) -> int:
        return hash(get(self) if several else (get(self),))

    return {"__eq__": equal, "__hash__": hashed}


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _guards(cls: Any) -> "dict[str, Callable[..., None]]":
    """Return the methods that refuse to change a field, or anything of an object that is of no other class."""
    names = frozenset(field.name for field in dataclasses.fields(cls))

    def assign(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": assign, "__delattr__": delete}


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_STATE = {"__getstate__": _getstate, "__setstate__": _setstate}
"""The methods that `copy` and `pickle` require of a class with slots whose fields can't be assigned."""
