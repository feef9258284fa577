"""Packages and channels in the form of the formats."""

from collections import Counter
from collections.abc import Iterable, Mapping

from tenv.core.names import WheelFile, channel_urls, channel_word, is_sha256, normalize
from tenv.core.versions import same_release
from tenv.interop.interface import Subject
from tenv.locks.lock import Wheel

__all__ = ["channel_words", "left_out", "not_known", "other_channels", "wheel_at", "words_of"]


def other_channels(channels: Mapping[str, str]) -> dict[str, str]:
    """Return the channel, in a manifest's form, of each package that is not from the most frequent channel.

    Args:
        channels: The URL of each package's channel, by the package's name.
    """
    counts = Counter(channels.values())
    main = max(counts, key=counts.__getitem__, default="")
    return {name: channel_word(url) for name, url in channels.items() if url != main}


def words_of(words: Iterable[str], platforms: Iterable[str]) -> tuple[str, ...]:
    """Return the channels of another tool's file in a manifest's form: conda's ``defaults`` one by one."""
    listed = tuple(words)
    found = (url for platform in platforms for word in listed for url in channel_urls(word, platform))
    return tuple(dict.fromkeys(map(channel_word, found)))


def channel_words(subject: Subject) -> tuple[str, ...]:
    """Return the channels of a lock in its manifest's form; those of single requests come last."""
    manifest = subject.manifest
    named = [*manifest.channels]
    for platform in subject.platforms:
        named += [request.channel for request in manifest.on(platform).dependencies.values() if request.channel]
    words = {url: word for word in reversed(named) for url in channel_urls(word)}
    if not subject.lock.channels:
        return tuple(dict.fromkeys(named))
    return tuple(dict.fromkeys(words.get(url.rstrip("/"), channel_word(url)) for url in subject.lock.channels))


def wheel_at(url: str, name: str, version: str, sha256: str, size: int | None, python: Iterable[str]) -> Wheel | None:
    """Return the wheel at a URL; None if a lock can't have it: a source archive, a folder, no hash."""
    file = WheelFile.parse(url)
    if file is None or not is_sha256(sha256) or "://" not in url:
        return None
    if file.name != normalize(name) or not same_release(file.version, version):
        return None
    return Wheel(file.name, version, file.file, sha256, size, tuple(python))


def not_known(subject: Subject) -> list[str]:
    """Return a sentence about wheels with unknown requirements, or nothing."""
    wheels = [wheel for platform in subject.platforms for wheel in subject.wheels(platform)]
    names = {wheel.name for wheel in wheels if not subject.located[wheel.sha256].known}
    return [f"the index has no requirements of these: {', '.join(sorted(names))}"] if names else []


def left_out(
    subject: Subject, *, variables: bool = False, wheels: bool = True, conda: bool = True, host: bool = False
) -> list[str]:
    """Return what formats of package managers can't express of a target, one sentence each.

    Args:
        subject: The exported target.
        variables: Whether the format holds variables.
        wheels: Whether the format holds wheels.
        conda: Whether the format holds conda packages.
        host: Whether the format holds the requirements on the host.
    """
    lost = []
    here = {platform: subject.manifest.on(platform) for platform in subject.platforms}
    archives = sorted({archive.name for platform in here for archive in subject.lock.archives.get(platform, ())})
    archives = archives or sorted({name for manifest in here.values() for name in manifest.archives})
    if archives:
        lost.append(f"[archives] is not exported: {', '.join(archives)}")
    if system := sorted({name for manifest in here.values() for name in manifest.system}):
        lost.append(f"[system] is not exported: {', '.join(system)}")
    if not variables and (names := sorted({name for manifest in here.values() for name in manifest.environment})):
        lost.append(f"[activation.env] is not exported: {', '.join(names)}")
    if not wheels and (count := len({w.file for platform in here for w in subject.wheels(platform)})):
        lost.append(f"wheels are not exported: {count} are omitted")
    if not conda and (count := len({package.url for name in here for package in subject.lock.conda.get(name, ())})):
        lost.append(f"conda packages are not exported: {count} are omitted")
    required = [name for name in ("cuda", "glibc") if name in subject.lock.requirements]
    if not host and required:
        lost.append(f"requirements on the host are not exported: {', '.join(required)}")
    if subject.manifest.pytorch:
        lost.append(f"the supported PyTorch revisions are not exported: {subject.manifest.pytorch}")
    return lost
