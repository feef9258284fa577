from pybind11.setup_helpers import Pybind11Extension
from setuptools import setup

setup(name="extension", version="1", ext_modules=[Pybind11Extension("extension", ["extension.cpp"])])
