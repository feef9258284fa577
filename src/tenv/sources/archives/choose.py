"""Files from outside any package manager: chosen for a lock, by NVIDIA's redist manifests or by their address."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from tenv.core.errors import HashMismatchError, ManifestError, NetworkError, NoSolutionError, UsageError
from tenv.core.http_settings import shown
from tenv.core.versions import Version
from tenv.facts.redist_rows import Archive as Row
from tenv.facts.tables import Facts
from tenv.locks.lock import Archive, Lock
from tenv.sources.archives.download import Fetcher
from tenv.sources.archives.formats.interface import KINDS, kind_of
from tenv.sources.archives.partial_file import Wanted
from tenv.sources.archives.redist import (
    NVIDIA_PLATFORMS,
    Product,
    RedistFile,
    RedistManifest,
    labels,
    parse_manifest,
    product,
)
from tenv.sources.archives.store import Store
from tenv.sources.archives.version_choice import Choice, Question, answers, choose, rows_of
from tenv.targets.manifest import ArchiveRequest, Manifest

__all__ = ["Archives", "home"]


def home(name: str) -> str:
    """Return where in a prefix an archive goes when the manifest does not say."""
    return f"opt/{name}"


@dataclass(frozen=True, slots=True)
class _Offer:
    """An archive that may be taken, from whichever source.

    Attributes:
        component: What it is a part of.
        version: Its version.
        cuda_major: The CUDA major that it is made for; None when it is of no particular one.
        url: Where it is.
        sha256: Its digest in hex.
        size: Its bytes, None when nobody says.
        trust: Who says so: ``facts`` or ``redist``.
    """

    component: str
    version: str
    cuda_major: int | None
    url: str
    sha256: str
    size: int | None
    trust: str


@dataclass(slots=True)
class Archives:
    """Chooses the archives of a manifest.

    Attributes:
        facts: What is known without asking anybody.
        fetcher: Asks.
        store: Keeps what had to be fetched to be known.
        trust: Whether a file whose digest nobody names may be taken as it is seen now.
        say: Told what a person should know.
    """

    facts: Facts
    fetcher: Fetcher
    store: Store
    trust: bool = False
    say: Callable[[str], None] = field(default=lambda _: None)
    _manifests: dict[str, RedistManifest | None] = field(default_factory=dict)

    def lock(
        self, manifest: Manifest, old: Lock | None, upgrade: Sequence[str] | None
    ) -> dict[str, tuple[Archive, ...]]:
        """Choose the archives of every platform, keeping what still fits.

        Args:
            manifest: The manifest.
            old: The lock before.
            upgrade: Names whose version is chosen anew; None for all.

        Raises:
            NoSolutionError: There is no archive that answers a request.
            HashMismatchError: NVIDIA lists other bytes than it did under the same name.
            NetworkError: A server does not answer, or not with what was asked.
            UsageError: A file has no digest, and nobody has said that it may be trusted.
        """
        found: dict[str, list[Archive]] = {platform: [] for platform in manifest.platforms}
        for name, request, platforms in _requests(manifest):
            kept = old if old and upgrade is not None and name not in upgrade else None
            if request.url:
                # An address has no newer version: what is recorded of it stays, or an update could never be done.
                one = self._by_address(manifest, name, request, kept if self.trust else old)
                for platform in platforms:
                    found[platform].append(one)
                continue
            version = _kept_version(kept, name, platforms)
            question = Question(name, request.version, manifest, platforms, version)
            for platform, archives in self._by_version(question, request).items():
                found[platform] += archives
        return {
            platform: tuple(sorted(archives, key=lambda archive: archive.name)) for platform, archives in found.items()
        }

    # A file by its address

    def _by_address(self, manifest: Manifest, name: str, request: ArchiveRequest, old: Lock | None) -> Archive:
        kind = kind_of(urlsplit(request.url).path)
        if not kind:
            raise ManifestError(
                f"{manifest.file}: archives.{name}.url: the name of the file does not tell how it is packed",
                hint=f"it has to end in {', '.join(f'.{known}' for known in KINDS)}",
            )
        to = home(name) if not request.to else request.to.strip("/").removeprefix(".").strip("/")
        archive = Archive(name, "", request.url, request.sha256, None, kind, request.strip, to)
        same = [
            row
            for rows in (old.archives.values() if old else ())
            for row in rows
            if row.url == request.url and request.sha256 in ("", row.sha256)
        ]
        if same:
            trust = "manifest" if request.sha256 else same[0].trust
            return replace(archive, sha256=same[0].sha256, size=same[0].size, trust=trust)
        if request.sha256:
            return archive
        if not self.trust:
            raise UsageError(
                f"{manifest.file}: archives.{name}: nobody says which bytes {request.url} has: it has no sha256",
                hint=f"put its sha256 into the manifest, or let `tenv lock {manifest.name} --trust-first-use` "
                "record what it sees now",
            )
        fetched = self.store.fetch(self.fetcher, Wanted(name, request.url))
        self.say(f"{name}: {request.url} was trusted on first use: sha256 {fetched.sha256}")
        return replace(archive, sha256=fetched.sha256, size=fetched.size, trust="first-use")

    # A product by its version

    def _by_version(self, question: Question, request: ArchiveRequest) -> dict[str, list[Archive]]:
        choice = choose(self.facts, question)
        if choice.reason:
            self.say(f"{question.name} {choice.version}: {choice.reason}")
        asked = product(request.product or question.name)
        if request.product and request.product != question.name:
            asked = replace(asked, components=(question.name,))
        live = self._manifest(asked, choice, question)
        found = {}
        for platform in question.platforms:
            offers = self._offers(question, choice, asked, live, platform)
            found[platform] = [_archive(question.name, request, offer, len(offers) > 1) for offer in offers]
        return found

    def _manifest(self, asked: Product, choice: Choice, question: Question) -> RedistManifest | None:
        """Return the live manifest of a release; None when the facts have to do."""
        if self.fetcher.offline and choice.known:
            return None
        what = f"{question.name} {choice.version}"
        for label in labels(choice.version):
            url = asked.manifest_url(label)
            if url not in self._manifests:
                try:
                    raw = self.fetcher.text(url, f"the redist manifest of {what}")
                except NetworkError as error:
                    if not choice.known:
                        raise
                    self.say(f"{what}: taken from the facts, not compared with NVIDIA's list: {error.message}")
                    return None
                self._manifests[url] = parse_manifest(raw, self._told(url)) if raw is not None else None
            if (manifest := self._manifests[url]) is not None:
                return manifest
        if choice.known:
            where = self._told(asked.manifest_url(labels(choice.version)[0]))
            self.say(f"{what}: taken from the facts, not compared with NVIDIA's list: there is no {where}")
            return None
        raise self._unknown(asked, choice, question)

    def _told(self, url: str) -> str:
        """Return the address that was asked, which is a mirror's where there is one, for messages."""
        return shown(self.fetcher.settings.served(url)[-1])

    def _unknown(self, asked: Product, choice: Choice, question: Question) -> NoSolutionError:
        rows = rows_of(self.facts, question.name)
        known = [str(version) for version in sorted({row.version for row in rows})]
        return NoSolutionError(
            f"archives.{question.name}: there is no {asked.name} {choice.version} in NVIDIA's redist",
            hint=f"the newest known ones are {', '.join(known[-6:])}"
            if known
            else f"asked at {self._told(asked.base)}",
        )

    def _offers(
        self, question: Question, choice: Choice, asked: Product, live: RedistManifest | None, platform: str
    ) -> list[_Offer]:
        """Return the archives to take on a platform, the facts and the live list compared."""
        theirs = NVIDIA_PLATFORMS[platform]
        cuda = question.manifest.on(platform).requirements.cuda
        offers = list(_listed(asked, live, theirs, question)) if live else []
        if not choice.known:
            groups = [[offer for offer in offers if offer.component == name] for name in _order(offers)]
            if not groups:
                raise _none(question, choice, platform, cuda, offers)
            _check_version(question, live, offers)
            return [_pick(question, choice, platform, cuda, group) for group in groups]
        rows = [row for row in rows_of(self.facts, question.name) if row.platform == theirs]
        known = [_from_row(question.name, row) for row in rows if str(row.version) == choice.version]
        taken = _pick(question, choice, platform, cuda, known)
        for offer in offers:
            if (offer.version, offer.cuda_major) == (taken.version, taken.cuda_major):
                _compare(question.name, taken, offer)
        return [taken]


def _requests(manifest: Manifest) -> Iterator[tuple[str, ArchiveRequest, tuple[str, ...]]]:
    """Yield every request with the platforms that make it."""
    seen: dict[tuple[str, ArchiveRequest], list[str]] = {}
    for platform in manifest.platforms:
        for name, request in manifest.on(platform).archives.items():
            seen.setdefault((name, request), []).append(platform)
    for (name, request), platforms in sorted(seen.items(), key=lambda item: (item[0][0], item[1])):
        yield name, request, tuple(platforms)


def _kept_version(old: Lock | None, name: str, platforms: Sequence[str]) -> str:
    versions = {
        row.version
        for platform in platforms
        for row in (old.archives.get(platform, ()) if old else ())
        if row.name == name
    }
    return versions.pop() if len(versions) == 1 else ""


def _listed(asked: Product, live: RedistManifest, platform: str, question: Question) -> Iterator[_Offer]:
    """Yield what a live manifest offers for a platform."""
    for component in _components(asked, live, platform, question):
        for file in live.files(component, platform):
            yield _from_file(asked, file)


def _components(asked: Product, live: RedistManifest, platform: str, question: Question) -> list[str]:
    there = live.components()
    if asked.components:
        return [component for component in asked.components if component in there]
    here = [name for name in there if live.files(name, platform) and not name.endswith("_samples")]
    named = [name for name in here if name.replace("_", "").removeprefix("lib") == asked.name.replace("_", "")]
    if len(here) == 1 or len(named) == 1:
        return named or here
    raise NoSolutionError(
        f"archives.{question.name}: {asked.name} has several components: {', '.join(here) or 'none for ' + platform}",
        hint=f'ask for one: `COMPONENT = {{ product = "{asked.name}", version = "{question.wanted}" }}`',
    )


def _check_version(question: Question, live: RedistManifest | None, offers: Sequence[_Offer]) -> None:
    """Refuse a manifest whose label fits and whose archives are of another version than the one asked for."""
    label = live.label if live else ""
    found = sorted({offer.version for offer in offers if not answers(offer.version, question.wanted)})
    if found and question.wanted != label:
        raise NoSolutionError(
            f"archives.{question.name}: NVIDIA's release {label} holds {', '.join(found)}, not {question.wanted}",
            hint=f'ask for "{label}" or for "{found[0]}"',
        )


def _order(offers: Sequence[_Offer]) -> list[str]:
    return list(dict.fromkeys(offer.component for offer in offers))


def _from_file(asked: Product, file: RedistFile) -> _Offer:
    return _Offer(
        file.component, file.version, file.cuda_major, asked.base + file.path, file.sha256, file.size, "redist"
    )


def _from_row(name: str, row: Row) -> _Offer:
    return _Offer(name, str(row.version), row.cuda_major, row.url, row.sha256, row.size, "facts")


def _pick(question: Question, choice: Choice, platform: str, cuda: Version | None, offers: Sequence[_Offer]) -> _Offer:
    """Return the archive for the target's CUDA."""
    by_major = {offer.cuda_major: offer for offer in offers}
    if cuda is not None and cuda.major in by_major:
        return by_major[cuda.major]
    if None in by_major:
        return by_major[None]
    if cuda is None and len(by_major) == 1:
        return next(iter(by_major.values()))
    raise _none(question, choice, platform, cuda, offers)


def _none(
    question: Question, choice: Choice, platform: str, cuda: Version | None, offers: Sequence[_Offer]
) -> NoSolutionError:
    majors = ", ".join(str(offer.cuda_major) for offer in offers)
    made_for = f" for CUDA {cuda}" if cuda else ", and the manifest names no CUDA" if majors else ""
    hint = (
        f"it has files for CUDA {majors}"
        if majors
        else f"NVIDIA's name of the platform is {NVIDIA_PLATFORMS[platform]}"
    )
    return NoSolutionError(
        f"archives.{question.name}: {question.name} {choice.version} has no file on {platform}{made_for}", hint=hint
    )


def _compare(name: str, known: _Offer, live: _Offer) -> None:
    """Stop where NVIDIA lists another file under a name that the facts know."""
    if live.sha256 == known.sha256 and (known.size is None or live.size in (None, known.size)):
        return
    raise HashMismatchError(
        f"{name} {known.version}: NVIDIA now lists another file under the name {known.url.rpartition('/')[2]}\n"
        f"  the facts  sha256 {known.sha256}, {known.size or 'unknown'} bytes\n"
        f"  the list   sha256 {live.sha256}, {live.size or 'unknown'} bytes",
        hint="it was replaced under its old name: find out why, then put the row that you trust into "
        f"facts/{name}.toml of your configuration folder, or name the file with `url` and `sha256`",
    )


def _archive(name: str, request: ArchiveRequest, offer: _Offer, several: bool) -> Archive:
    kind = kind_of(urlsplit(offer.url).path)
    if not kind:
        raise NoSolutionError(f"archives.{name}: {offer.url}: its name does not tell how it is packed")
    below = (request.to.strip("/") if request.to else home(name)) + (f"/{offer.component}" if several else "")
    return Archive(
        name=offer.component if several else name,
        version=offer.version,
        url=offer.url,
        sha256=offer.sha256,
        size=offer.size,
        kind=kind,
        strip=request.strip or 1,
        to=below,
        trust=offer.trust,
    )
