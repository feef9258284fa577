"""The archives of a prefix, from their records in ``tenv-meta``."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from tenv.core.prefix import ARCHIVES
from tenv.environment.installed_files import POINTER, Expected, Records, listed, read_note


class InstalledArchives(Records):
    """The archives of a prefix, by their names in ``[archives]``."""

    __slots__ = ()
    SOLE = True

    def names(self) -> Collection[str]:
        """Return the names of the installed archives."""
        return self._records().keys()

    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files and links in the records of archives; the records themselves are in ``tenv-meta``."""
        known = self._records()
        for name in names:
            yield from _placed(known.get(name, {}))

    def own_files(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield the record of each archive."""
        known = self._records()
        yield from (f"{ARCHIVES}/{name}.json" for name in packages if name in known)

    def hold(self, packages: Mapping[str, tuple[str, ...]]) -> bool:
        """Return whether archives are installed, by their records and the names of their files."""
        if not packages:
            return True
        known = self._records()
        return all(
            name in known
            and known[name].get("sha256") == sha256
            and all(os.path.lexists(self.prefix / file) for file in _placed(known[name]))
            for name, (_, sha256) in packages.items()
        )

    def expected(self, packages: Mapping[str, tuple[str, ...]]) -> Iterator[Expected]:
        """Yield the files and links of archives, with the digests and targets in their records."""
        known = self._records() if packages else {}
        for name, (version, sha256) in packages.items():
            record = known.get(name, {})
            files, links = record.get("files"), record.get("links")
            if record.get("sha256") != sha256 or not isinstance(files, dict) or not isinstance(links, dict):
                yield Expected(f"{name} {version}".rstrip(), name)
                continue
            yield Expected(f"{ARCHIVES}/{name}.json", name)
            yield from (Expected(file, name, f"sha256:{digest}") for file, digest in files.items())
            yield from (Expected(link, name, f"{POINTER}{target}") for link, target in links.items())

    def _records(self) -> dict[str, dict[str, Any]]:
        read = {path.stem: read_note(path) for path in sorted((self.prefix / ARCHIVES).glob("*.json"))}
        return {name: record for name, record in read.items() if record.get("name") == name}


def _placed(record: Mapping[str, Any]) -> Iterator[str]:
    yield from map(os.path.normpath, (*listed(record, "files"), *listed(record, "links")))
