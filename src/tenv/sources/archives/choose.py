"""Files from outside any package manager: chosen for a lock, by NVIDIA's redist manifests or by their address."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from tenv.core.errors import ManifestError, NetworkError, NoSolutionError, UsageError
from tenv.core.http_settings import shown
from tenv.facts.tables import Facts
from tenv.locks.lock import Archive, Lock
from tenv.sources.archives.answers import place_of
from tenv.sources.archives.cuda_release import check_components, check_one_release, toolkit
from tenv.sources.archives.download import Fetcher
from tenv.sources.archives.formats.interface import KINDS, kind_of
from tenv.sources.archives.offers import Offer, compare, from_file, from_row, none_fits, pick
from tenv.sources.archives.partial_file import RemoteFile
from tenv.sources.archives.redist import (
    NVIDIA_PLATFORMS,
    Product,
    RedistManifest,
    labels,
    parse_manifest,
    product,
)
from tenv.sources.archives.store import Store
from tenv.sources.archives.version_choice import CUDA, VersionChoice, VersionQuery, answers, choose, rows_of
from tenv.targets.manifest import ArchiveRequest, Manifest

__all__ = ["ArchiveChooser"]


@dataclass(slots=True)
class ArchiveChooser:
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
            question = VersionQuery(name, request.version, manifest, platforms, version, request.product)
            for platform, archives in self._by_version(question, request).items():
                found[platform] += archives
        for platform, archives in found.items():
            check_one_release(manifest.file, platform, archives)
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
        archive = Archive(name, "", request.url, request.sha256, None, kind, request.strip, place_of(request, name))
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
        fetched = self.store.fetch(self.fetcher, RemoteFile(name, request.url))
        self.say(f"{name}: {request.url} was trusted on first use: sha256 {fetched.sha256}")
        return replace(archive, sha256=fetched.sha256, size=fetched.size, trust="first-use")

    # A product by its version

    def _by_version(self, question: VersionQuery, request: ArchiveRequest) -> dict[str, list[Archive]]:
        choice = choose(self.facts, question)
        if choice.reason:
            self.say(f"{question.name} {choice.version}: {choice.reason}")
        asked = product(request.product or question.name)
        if request.product and request.product != question.name:
            asked = replace(asked, components=(question.name,))
        elif request.components:
            asked = replace(asked, components=request.components)
        live = self._manifest(asked, choice, question)
        found = {}
        for platform in question.platforms:
            offers = self._offers(question, choice, asked, live, platform)
            found[platform] = [_archive(question.name, request, offer, len(offers) > 1) for offer in offers]
        return found

    def _manifest(self, asked: Product, choice: VersionChoice, question: VersionQuery) -> RedistManifest | None:
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

    def _unknown(self, asked: Product, choice: VersionChoice, question: VersionQuery) -> NoSolutionError:
        rows = rows_of(self.facts, question.name)
        known = [str(version) for version in sorted({row.version for row in rows})]
        return NoSolutionError(
            f"archives.{question.name}: there is no {asked.name} {choice.version} in NVIDIA's redist",
            hint=f"the newest known ones are {', '.join(known[-6:])}"
            if known
            else f"asked at {self._told(asked.base)}",
        )

    def _offers(
        self, question: VersionQuery, choice: VersionChoice, asked: Product, live: RedistManifest | None, platform: str
    ) -> list[Offer]:
        """Return the archives to take on a platform, the facts and the live list compared."""
        theirs = NVIDIA_PLATFORMS[platform]
        cuda = question.manifest.on(platform).requirements.cuda
        if live and asked.name == CUDA:
            return self._of_release(question, choice, asked, live, theirs)
        offers = list(_listed(asked, live, theirs, question)) if live else []
        if not choice.known:
            groups = [[offer for offer in offers if offer.component == name] for name in _order(offers)]
            if not groups:
                raise none_fits(question, choice, platform, cuda, offers)
            _check_version(question, live, offers)
            return [pick(question, choice, platform, cuda, group) for group in groups]
        rows = [row for row in rows_of(self.facts, question.name) if row.platform == theirs]
        known = [from_row(question.name, row) for row in rows if str(row.version) == choice.version]
        taken = pick(question, choice, platform, cuda, known)
        for offer in offers:
            if (offer.version, offer.cuda_major) == (taken.version, taken.cuda_major):
                compare(question.name, taken, offer)
        return [taken]

    def _of_release(
        self, question: VersionQuery, choice: VersionChoice, asked: Product, live: RedistManifest, theirs: str
    ) -> list[Offer]:
        """Return the components of a release of CUDA: those that are named, else those that a build of PyTorch uses."""
        if not asked.components:
            asked = replace(asked, components=toolkit(self.facts.cuda_redist, question, choice.version, live, theirs))
        check_components(question, asked.components, live, theirs)
        offers = list(_listed(asked, live, theirs, question))
        return [replace(offer, release=choice.version) for offer in offers]


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
        row.release or row.version
        for platform in platforms
        for row in (old.archives.get(platform, ()) if old else ())
        if row.answers_for(name)
    }
    return versions.pop() if len(versions) == 1 else ""


def _listed(asked: Product, live: RedistManifest, platform: str, question: VersionQuery) -> Iterator[Offer]:
    """Yield what a live manifest offers for a platform."""
    for component in _components(asked, live, platform, question):
        for file in live.files(component, platform):
            yield from_file(asked, file)


def _components(asked: Product, live: RedistManifest, platform: str, question: VersionQuery) -> list[str]:
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


def _check_version(question: VersionQuery, live: RedistManifest | None, offers: Sequence[Offer]) -> None:
    """Refuse a manifest whose label fits and whose archives are of another version than the one asked for."""
    label = live.label if live else ""
    found = sorted({offer.version for offer in offers if not answers(offer.version, question.wanted)})
    if found and question.wanted != label:
        raise NoSolutionError(
            f"archives.{question.name}: NVIDIA's release {label} holds {', '.join(found)}, not {question.wanted}",
            hint=f'ask for "{label}" or for "{found[0]}"',
        )


def _order(offers: Sequence[Offer]) -> list[str]:
    return list(dict.fromkeys(offer.component for offer in offers))


def _archive(name: str, request: ArchiveRequest, offer: Offer, several: bool) -> Archive:
    kind = kind_of(urlsplit(offer.url).path)
    if not kind:
        raise NoSolutionError(f"archives.{name}: {offer.url}: its name does not tell how it is packed")
    return Archive(
        name=offer.component if several else name,
        version=offer.version,
        url=offer.url,
        sha256=offer.sha256,
        size=offer.size,
        kind=kind,
        strip=request.strip or 1,
        to=place_of(request, name, offer.component if several else ""),
        trust=offer.trust,
        release=offer.release,
        part_of=name if several and offer.release else "",
    )
