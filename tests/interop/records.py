"""A few real records of conda-forge, and small locks made of them, in each form that other tools write."""

from collections.abc import Callable
from pathlib import Path

from tests.interop.lock_index import Release

__all__ = [
    "CONDA_LOCK",
    "LOCKS",
    "OLD_PIXI",
    "PIXI",
    "SOURCE_ONLY",
    "WHEELS",
    "write_conda_lock",
    "write_old_pixi",
    "write_pixi",
]

HOME = "https://conda.anaconda.org/conda-forge"
SHA = {
    "beta": "be" * 32,
    "alpha": "a1" * 32,
}
WHEELS = [
    Release("alpha", "1.0", "alpha-1.0-py3-none-any.whl", SHA["alpha"], ("beta>=1",), ">=3.8"),
    Release("beta", "1.2", "beta-1.2-cp311-cp311-manylinux_2_17_x86_64.whl", SHA["beta"], (), ">=3.8"),
]
FILES = "https://files.example.org"

PACKAGES = f"""\
packages:
- conda: {HOME}/linux-64/_libgcc_mutex-0.1-conda_forge.tar.bz2
  sha256: fe51de6107f9edc7aa4f786a70f4a883943bc9d39b3bb7307c04c41410990726
  md5: d7c89558ba9fa0495403155b64376d81
  license: None
  size: 2562
  timestamp: 1578324546067
- conda: {HOME}/linux-64/bzip2-1.0.8-hda65f42_8.conda
  sha256: c30daba32ddebbb7ded490f0e371eae90f51e72db620554089103b4a6934b0d5
  md5: 51a19bba1b8ebfb60df25cde030b7ebc
  depends:
  - __glibc >=2.17,<3.0.a0
  - libgcc >=14
  constrains:
  - nothing-of-it <0
  license: bzip2-1.0.6
  license_family: BSD
  purls: []
  size: 260341
  timestamp: 1757437258798
- conda: {HOME}/linux-64/libgcc-15.2.0-h767d61c_7.conda
  sha256: 08f9b87578ab981c7713e4e6a7d935e40766e10691732bba376d4964562bcb45
  md5: c0374badb3a5d4b1372db28d19462c53
  depends:
  - __glibc >=2.17,<3.0.a0
  - _libgcc_mutex 0.1 conda_forge
  license: GPL-3.0-only WITH GCC-exception-3.1
  license_family: GPL
  size: 822552
  timestamp: 1759968052178
- conda: {HOME}/linux-64/python-3.11.14-hd63d673_2_cpython.conda
  build_number: 2
  sha256: 5b872f7747891e50e990a96d2b235236a5c66cc9f8c9dcb7149aee674ea8145a
  md5: c4202a55b4486314fbb8c11bc43a29a0
  depends:
  - __glibc >=2.17,<3.0.a0
  - bzip2 >=1.0.8,<2.0a0
  - libgcc >=14
  - tzdata
  constrains:
  - python_abi 3.11.* *_cp311
  license: Python-2.0
  size: 30874708
  timestamp: 1761174520369
- conda: {HOME}/noarch/tzdata-2025b-h78e105d_0.conda
  sha256: 5aaa366385d716557e365f0a4e9c3fca43ba196872abbbe3d56bb610d131e192
  md5: 4222072737ccff51314b5ece9c7d6f5a
  license: LicenseRef-Public-Domain
  size: 122968
  timestamp: 1742727099393
- conda: {HOME}/win-64/bzip2-1.0.8-h0ad9c76_8.conda
  sha256: d882712855624641f48aa9dc3f5feea2ed6b4e6004585d3616386a18186fe692
  md5: 1077e9333c41ff0be8edd1a5ec0ddace
  license: bzip2-1.0.6
  license_family: BSD
  size: 55977
  timestamp: 1757437738856
- pypi: {FILES}/alpha-1.0-py3-none-any.whl
  name: alpha
  version: '1.0'
  sha256: {SHA["alpha"]}
  requires_dist:
  - beta>=1
  requires_python: '>=3.8'
- pypi: {FILES}/beta-1.2-cp311-cp311-manylinux_2_17_x86_64.whl
  name: beta
  version: '1.2'
  sha256: {SHA["beta"]}
  requires_python: '>=3.8'
"""

PIXI = f"""\
version: 7
platforms:
- name: osx-arm64
- name: p1
  subdir: linux-64
  virtual-packages:
  - __cuda=12.1
  - __glibc=2.17
- name: win-64
environments:
  default:
    channels:
    - url: {HOME}/
    indexes:
    - https://index.example.org/simple
    options:
      channel-priority: disabled
    packages:
      osx-arm64: []
      p1:
      - conda: {HOME}/linux-64/_libgcc_mutex-0.1-conda_forge.tar.bz2
      - conda: {HOME}/linux-64/bzip2-1.0.8-hda65f42_8.conda
      - conda: {HOME}/linux-64/libgcc-15.2.0-h767d61c_7.conda
      - conda: {HOME}/linux-64/python-3.11.14-hd63d673_2_cpython.conda
      - conda: {HOME}/noarch/tzdata-2025b-h78e105d_0.conda
      - pypi: {FILES}/alpha-1.0-py3-none-any.whl
      - pypi: {FILES}/beta-1.2-cp311-cp311-manylinux_2_17_x86_64.whl
      win-64:
      - conda: {HOME}/noarch/tzdata-2025b-h78e105d_0.conda
      - conda: {HOME}/win-64/bzip2-1.0.8-h0ad9c76_8.conda
  other:
    channels:
    - url: {HOME}/
    packages:
      win-64:
      - conda: {HOME}/win-64/bzip2-1.0.8-h0ad9c76_8.conda
{PACKAGES}"""

OLD_PIXI = f"""\
version: 4
metadata:
  content_hash: {{}}
environments:
  default:
    channels:
    - url: {HOME}/
    packages:
      linux-64:
      - conda: {HOME}/linux-64/bzip2-1.0.8-hd590300_5.conda
      - conda: {HOME}/noarch/tzdata-2024a-h0c530f3_0.conda
packages:
- kind: conda
  name: bzip2
  version: 1.0.8
  build: hd590300_5
  build_number: 5
  subdir: linux-64
  url: {HOME}/linux-64/bzip2-1.0.8-hd590300_5.conda
  sha256: 242c0c324507ee172c0e0dd2045814e746bb303d1eb78870d182ceb0abc726a8
  md5: 69b8b6202a07720f448be700e300ccf4
  license: bzip2-1.0.6
  license_family: BSD
  size: 254228
  timestamp: 1699279927352
- kind: conda
  name: tzdata
  version: 2024a
  build: h0c530f3_0
  subdir: noarch
  noarch: generic
  url: {HOME}/noarch/tzdata-2024a-h0c530f3_0.conda
  sha256: 7b2b69c54ec62a243eb6fba2391b5e443421608c3ae5dbff938ad33ca8db5122
  md5: 161081fc7cec0bfda0d86d7cb595f8d8
  license: LicenseRef-Public-Domain
  size: 119815
  timestamp: 1706886945727
"""

CONDA_LOCK = f"""\
version: 1
metadata:
  content_hash:
    linux-64: 1f
  channels:
  - url: conda-forge
    used_env_vars: []
  platforms:
  - linux-64
  - osx-64
  sources:
  - environment.yml
package:
- name: bzip2
  version: 1.0.8
  manager: conda
  platform: linux-64
  dependencies:
    __glibc: '>=2.17,<3.0.a0'
    libgcc: '>=14'
  url: {HOME}/linux-64/bzip2-1.0.8-hda65f42_8.conda
  hash:
    md5: 51a19bba1b8ebfb60df25cde030b7ebc
    sha256: c30daba32ddebbb7ded490f0e371eae90f51e72db620554089103b4a6934b0d5
  category: main
  optional: false
- name: libgcc
  version: 15.2.0
  manager: conda
  platform: linux-64
  dependencies:
    __glibc: '>=2.17,<3.0.a0'
  url: {HOME}/linux-64/libgcc-15.2.0-h767d61c_7.conda
  hash:
    md5: c0374badb3a5d4b1372db28d19462c53
    sha256: 08f9b87578ab981c7713e4e6a7d935e40766e10691732bba376d4964562bcb45
  category: main
  optional: false
- name: python
  version: 3.11.14
  manager: conda
  platform: linux-64
  dependencies:
    bzip2: '>=1.0.8,<2.0a0'
    libgcc: '>=14'
  url: {HOME}/linux-64/python-3.11.14-hd63d673_2_cpython.conda
  hash:
    md5: c4202a55b4486314fbb8c11bc43a29a0
    sha256: 5b872f7747891e50e990a96d2b235236a5c66cc9f8c9dcb7149aee674ea8145a
  category: dev
  optional: true
- name: alpha
  version: '1.0'
  manager: pip
  platform: linux-64
  dependencies:
    beta: '>=1'
  url: {FILES}/alpha-1.0-py3-none-any.whl
  hash:
    sha256: {SHA["alpha"]}
  category: main
  optional: false
- name: beta
  version: '1.2'
  manager: pip
  platform: linux-64
  dependencies: {{}}
  url: {FILES}/beta-1.2-cp311-cp311-manylinux_2_17_x86_64.whl
  hash:
    sha256: {SHA["beta"]}
  category: main
  optional: false
"""

SOURCE_ONLY = f"""\
- name: source-only
  version: '3.0'
  manager: pip
  platform: linux-64
  dependencies: {{}}
  url: {FILES}/source-only-3.0.tar.gz
  hash:
    sha256: {"cd" * 32}
  category: main
  optional: false
"""
"""A package of `CONDA_LOCK` that only a source archive has."""


def _writer(name: str, text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text(text)
        return path

    return write


write_pixi = _writer("pixi.lock", PIXI)
write_old_pixi = _writer("pixi.lock", OLD_PIXI)
write_conda_lock = _writer("conda-lock.yml", CONDA_LOCK)
LOCKS = {"pixi": write_pixi, "old-pixi": write_old_pixi, "conda-lock": write_conda_lock}
