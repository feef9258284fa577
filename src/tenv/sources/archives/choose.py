"""Selects archives for a lock, from NVIDIA's redist manifests or by URL."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from tenv.core.errors import ManifestError, NetworkError, NoSolutionError, UsageError
from tenv.core.http_settings import shown
from tenv.facts.tables import Facts
from tenv.locks.lock import Archive, Lock
from tenv.sources.archives.answers import KINDS, kind_of, place_of
from tenv.sources.archives.download import Fetcher, RemoteFile
from tenv.sources.archives.redist import (
    NVIDIA_PLATFORMS,
    Product,
    RedistManifest,
    labels,
    parse_manifest,
    product,
)
from tenv.sources.archives.store import Store
from tenv.sources.archives.version_choice import (
    CUDA,
    Offer,
    VersionChoice,
    VersionQuery,
    answers,
    check_components,
    check_one_release,
    choose,
    compare,
    from_file,
    from_row,
    none_fits,
    pick,
    rows_of,
    toolkit,
)
from tenv.targets.manifest import ArchiveRequest, Manifest

Held = Mapping[str, Mapping[str, tuple[Archive, ...]]]
"""The archives that stay as they are locked, by request and platform."""


@dataclass(slots=True)
class ArchiveChooser:
    """Selects the archives of a manifest."""

    facts: Facts
    """The compatibility tables."""
    fetcher: Fetcher
    """Downloads files."""
    store: Store
    """Keeps the downloads that were needed for a digest."""
    trust: bool = False
    """Whether to record the digest of a download that has no published one."""
    say: Callable[[str], None] = field(default=lambda _: None)
    """Receives messages for the user."""
    _manifests: dict[str, RedistManifest | None] = field(default_factory=dict)

    def lock(
        self, manifest: Manifest, old: Lock | None, upgrade: Sequence[str] | None, held: Held
    ) -> dict[str, tuple[Archive, ...]]:
        """Select the archives of every platform, keeping those that still satisfy the manifest.

        Args:
            manifest: The manifest.
            old: The old lock.
            upgrade: Names to select anew; None for all.
            held: The archives that stay as they are locked.

        Raises:
            NoSolutionError: No archive satisfies a request.
            HashMismatchError: NVIDIA now lists other bytes under the same name.
            NetworkError: A server does not respond, or responds with something else.
            UsageError: A file has no digest, and `trust` is not set.
        """
        found: dict[str, list[Archive]] = {platform: [] for platform in manifest.platforms}
        for name, request, platforms in _requests(manifest):
            if name in held:
                for platform in platforms:
                    found[platform] += held[name][platform]
                continue
            kept = old if old and upgrade is not None and name not in upgrade else None
            if request.url:
                if request.optional and not self.trust and not _same(old, request):
                    self.say(
                        f"{name}: {request.url} is optional, and left out; `tenv lock {manifest.name} "
                        "--trust-first-use` adds it"
                    )
                    continue
                # A URL has no newer version, so its recorded digest stays.
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

    # A file by its URL

    def _by_address(self, manifest: Manifest, name: str, request: ArchiveRequest, old: Lock | None) -> Archive:
        kind = kind_of(urlsplit(request.url).path)
        if not kind:
            raise ManifestError(
                f"{manifest.file}: archives.{name}.url: the name of the file has no known extension",
                hint=f"known extensions: {', '.join(f'.{known}' for known in KINDS)}",
            )
        archive = Archive(name, "", request.url, request.sha256, None, kind, request.strip, place_of(request, name))
        if same := _same(old, request):
            trust = "manifest" if request.sha256 else same[0].trust
            return replace(archive, sha256=same[0].sha256, size=same[0].size, trust=trust)
        if request.sha256:
            return archive
        if not self.trust:
            raise UsageError(
                f"{manifest.file}: archives.{name}: {request.url} has no sha256",
                hint=f"add its `sha256` to the manifest, or `tenv lock {manifest.name} --trust-first-use` "
                "records the sha256 of the download",
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
        """Return the live manifest of a release; None if only the facts are available."""
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
                    self.say(f"{what}: resolved from the facts, not compared with NVIDIA's list: {error.message}")
                    return None
                self._manifests[url] = parse_manifest(raw, self._served(url)) if raw is not None else None
            if (manifest := self._manifests[url]) is not None:
                return manifest
        if choice.known:
            where = self._served(asked.manifest_url(labels(choice.version)[0]))
            self.say(f"{what}: resolved from the facts, not compared with NVIDIA's list: {where} does not exist")
            return None
        raise self._unknown(asked, choice, question)

    def _served(self, url: str) -> str:
        """Return the address in use for a URL, which may be a mirror, for messages."""
        return shown(self.fetcher.settings.served(url)[-1])

    def _unknown(self, asked: Product, choice: VersionChoice, question: VersionQuery) -> NoSolutionError:
        rows = rows_of(self.facts, question.name)
        known = [str(version) for version in sorted({row.version for row in rows})]
        return NoSolutionError(
            f"archives.{question.name}: NVIDIA's redist has no {asked.name} {choice.version}",
            hint=f"the newest known versions are {', '.join(known[-6:])}"
            if known
            else f"{self._served(asked.base)} has no such release",
        )

    def _offers(
        self, question: VersionQuery, choice: VersionChoice, asked: Product, live: RedistManifest | None, platform: str
    ) -> list[Offer]:
        """Return the archives for a platform, after a comparison of the facts with the live list."""
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
        """Return the requested components of a CUDA release, else those that a build of PyTorch uses."""
        if not asked.components:
            asked = replace(asked, components=toolkit(self.facts.cuda_redist, question, choice.version, live, theirs))
        check_components(question, asked.components, live, theirs)
        offers = list(_listed(asked, live, theirs, question))
        return [replace(offer, release=choice.version) for offer in offers]


def _requests(manifest: Manifest) -> Iterator[tuple[str, ArchiveRequest, tuple[str, ...]]]:
    """Yield every request with its platforms."""
    seen: dict[tuple[str, ArchiveRequest], list[str]] = {}
    for platform in manifest.platforms:
        for name, request in manifest.on(platform).archives.items():
            seen.setdefault((name, request), []).append(platform)
    for (name, request), platforms in sorted(seen.items(), key=lambda item: (item[0][0], item[1])):
        yield name, request, tuple(platforms)


def _same(old: Lock | None, request: ArchiveRequest) -> list[Archive]:
    """Return the rows of a lock for the file of a request by URL."""
    rows = (row for rows in (old.archives.values() if old else ()) for row in rows)
    return [row for row in rows if row.url == request.url and request.sha256 in ("", row.sha256)]


def _kept_version(old: Lock | None, name: str, platforms: Sequence[str]) -> str:
    versions = {
        row.release or row.version
        for platform in platforms
        for row in (old.archives.get(platform, ()) if old else ())
        if row.answers_for(name)
    }
    return versions.pop() if len(versions) == 1 else ""


def _listed(asked: Product, live: RedistManifest, platform: str, question: VersionQuery) -> Iterator[Offer]:
    """Yield the archives of a live manifest for a platform."""
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
        hint=f'request one: `COMPONENT = {{ product = "{asked.name}", version = "{question.wanted}" }}`',
    )


def _check_version(question: VersionQuery, live: RedistManifest | None, offers: Sequence[Offer]) -> None:
    """Raise an error if the label matches and the archives have another version than the requested one."""
    label = live.label if live else ""
    found = sorted({offer.version for offer in offers if not answers(offer.version, question.wanted)})
    if found and question.wanted != label:
        raise NoSolutionError(
            f"archives.{question.name}: NVIDIA's release {label} holds {', '.join(found)}, not {question.wanted}",
            hint=f'request "{label}" or "{found[0]}"',
        )


def _order(offers: Sequence[Offer]) -> list[str]:
    return list(dict.fromkeys(offer.component for offer in offers))


def _archive(name: str, request: ArchiveRequest, offer: Offer, several: bool) -> Archive:
    kind = kind_of(urlsplit(offer.url).path)
    if not kind:
        raise NoSolutionError(f"archives.{name}: {offer.url}: its name has no known extension")
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
