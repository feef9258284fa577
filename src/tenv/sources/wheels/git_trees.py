"""Commits of git repositories: the one that a request means, its files, and its history."""

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tenv.core import process
from tenv.core.errors import CertificateError, HostError, LockStaleError, NetworkError, NoSolutionError
from tenv.core.http import PROXY_LOGIN, PROXY_WORDS
from tenv.sources.access import Access
from tenv.targets.tree_request import TreeRequest

_SECONDS = 600.0
_CERTIFICATE = re.compile(r"certificate (verification failed|verify failed|problem)", re.IGNORECASE)
"""GnuTLS's words and OpenSSL's, by the library that git's curl has."""
_UNREAD = "fatal: Could not read from remote repository"
"""The line after the reason: of ssh, or of git for a folder."""
_OF_ONE_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")


def git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which git asks no questions and speaks no protocol that runs programs."""
    kept = {name: value for name, value in environ.items() if name not in _OF_ONE_REPOSITORY}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:ssh:file"}


class GitTree:
    """A bare clone with the commits of a repository; files are fetched when they are read."""

    def __init__(self, folder: Path, request: TreeRequest, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._request = request
        self._environ = environ

    def newest(self) -> str:
        """Return the full commit that the request means now.

        Raises:
            NoSolutionError: The repository has no such branch, tag or commit.
        """
        for reference in self._references():
            if found := self._ask("rev-parse", "--quiet", "--verify", "--end-of-options", f"{reference}^{{commit}}"):
                return found.strip()
        git, wanted = self._request.git, self._request
        what = wanted.branch or wanted.tag or wanted.rev or "HEAD"
        raise NoSolutionError(f"{git} has no branch, tag or commit `{what}`", hint=f"`git ls-remote {git}` lists them")

    def require_part(self, name: str, commit: str, target: str) -> None:
        """Refuse a commit outside the history of the branch or tag of the manifest: a host may have it from anyone.

        Raises:
            LockStaleError: It is not.
        """
        if self._request.commit:
            return
        if not self._ask("merge-base", commit, self.newest(), same=commit):
            what = self._request.branch or self._request.tag or self._request.rev or "the default branch"
            raise LockStaleError(
                f"{name}: the locked commit {commit} is not in the history of {what} of {self._request.git}",
                hint=f"`tenv update {target} {name}` locks the newest one",
            )

    def has(self, commit: str) -> bool:
        """Return whether the repository has a commit."""
        return bool(self._ask("cat-file", "-t", commit, same="commit"))

    def project_file(self, commit: str) -> bytes | None:
        """Return the ``pyproject.toml`` of a commit; None if it has none, or a link in its place.

        Raises:
            NetworkError: The repository can't be read.
        """
        below = f"{self._request.subdirectory.strip('/')}/" if self._request.subdirectory.strip("./") else ""
        row = self._require("ls-tree", commit, "--", f"{below}pyproject.toml")
        if not row.startswith("100"):  # the mode of a plain file
            return None
        return self._require("cat-file", "blob", f"{commit}:{below}pyproject.toml").encode()

    def _require(self, *words: str) -> str:
        done = _git(self._folder, self._environ, *words)
        if done.status:
            raise NetworkError(f"{self._request.git}: git can't read it: {_reason(done.stderr)}")
        return done.stdout

    @contextlib.contextmanager
    def files(self, commit: str, *, submodules: bool = False) -> Iterator[Path]:
        """Yield the folder of the package at a commit; it is removed afterwards.

        Args:
            commit: The commit.
            submodules: Whether the submodules are there, too, at the commits that this one pins.

        Raises:
            NetworkError: The files can't be fetched.
            NoSolutionError: The commit has no such folder, or a link that leads out of the repository.
        """
        with tempfile.TemporaryDirectory(prefix="tenv-") as name:
            place = Path(name).resolve() / "it"
            done = _git(self._folder, self._environ, "worktree", "add", "--quiet", "--detach", str(place), commit)
            if done.status:
                raise NetworkError(f"{self._request.git}: git can't check {commit} out: {_reason(done.stderr)}")
            if submodules and (place / ".gitmodules").is_file():
                self._fetch_submodules(place)
            inside = (place / self._request.subdirectory).resolve()
            if not inside.is_dir() or not inside.is_relative_to(place):
                raise NoSolutionError(f"{self._request.git} has no folder `{self._request.subdirectory}` at {commit}")
            yield inside

    def _fetch_submodules(self, place: Path) -> None:
        environ = dict(self._environ)
        if not self._request.git.startswith("file:"):  # git's own default: a repository names no folder of the user
            environ["GIT_ALLOW_PROTOCOL"] = "https:ssh"
        done = _git(place, environ, "submodule", "--quiet", "update", "--init", "--recursive", "--depth=1")
        if done.status:
            raise NetworkError(f"{self._request.git}: git can't fetch its submodules: {_reason(done.stderr)}")

    def _references(self) -> tuple[str, ...]:
        wanted = self._request
        if wanted.branch:
            return (f"refs/heads/{wanted.branch}",)
        if wanted.tag:
            return (f"refs/tags/{wanted.tag}",)
        if wanted.rev:
            return f"refs/tags/{wanted.rev}", f"refs/heads/{wanted.rev}", wanted.rev
        return ("HEAD",)

    def _ask(self, *words: str, same: str = "") -> str:
        """Return the output of git; empty if it fails, or prints another text than `same`."""
        done = _git(self._folder, self._environ, *words)
        text = "" if done.status else done.stdout
        return text if not same or text.strip() == same else ""


@contextlib.contextmanager
def clone(request: TreeRequest, access: Access) -> Iterator[GitTree]:
    """Yield the commits of a repository, in a folder that is removed afterwards.

    git verifies servers by the authorities of wheels and channels, unless a variable of git's own names others.

    Raises:
        CertificateError: git refuses the certificate of the server.
        NetworkError: The network is off, or the repository can't be reached.
        HostError: git is not installed.
    """
    if access.offline:
        raise NetworkError(f"{request.git}: a git repository is asked, and the network is off (--offline)")
    with tempfile.TemporaryDirectory(prefix="tenv-") as name:
        folder = Path(name)
        variables = git_environment({**access.http().authorities.git_variables(folder), **access.environ})
        done = _git(folder, variables, "clone", "--quiet", "--bare", "--filter=tree:0", "--", request.git, "it")
        if done.status:
            reason = _reason(done.stderr)
            if _CERTIFICATE.search(reason):
                raise CertificateError(
                    f"{request.git}: git can't clone it: {reason}",
                    hint="for your organization's own authority, set SSL_CERT_FILE=/path/to/authority.pem",
                )
            asks = "terminal prompts disabled" in reason or "Authentication failed" in reason
            hint = "git may ask nobody here: give it the login by ~/.netrc or a credential helper" if asks else ""
            hint = PROXY_LOGIN if PROXY_WORDS.search(reason) else hint
            raise NetworkError(f"{request.git}: git can't clone it: {reason}", hint=hint)
        yield GitTree(folder / "it", request, variables)


def _reason(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]  # the following lines are advice
    unread = next((number for number, line in enumerate(lines) if line.startswith(_UNREAD)), 0)
    return lines[unread - 1] if unread else (fatal or lines or ["it says nothing"])[-1]


def _git(folder: Path, environ: Mapping[str, str], *words: str) -> process.Completed:
    program = process.find("git", environ.get("PATH"))
    if program is None:
        raise HostError("git is not on PATH, and a package of the manifest comes from a git repository")
    safe = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.bareRepository=all")
    done = process.run([program, *safe, *words], environment=environ, folder=folder, timeout=_SECONDS)
    if isinstance(done, process.Missing):
        raise NetworkError(f"git did not end: {done.reason}")
    return done
