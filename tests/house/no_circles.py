"""An import contract: no modules import each other in a circle, imports for types included."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class NoCircles(Contract):  # type: ignore[misc]
    """Refuse circles among the modules of ``packages``, however long.

    Configured in ``pyproject.toml`` with ``type = "no_circles"``.
    """

    packages = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find one circle, if there is any."""
        modules = {
            module
            for module in graph.modules
            if any(module == name or module.startswith(f"{name}.") for name in self.packages)
        }
        imports = {
            module: graph.find_modules_directly_imported_by(module) & modules for module in modules
        }
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as error:
            return ContractCheck(kept=False, metadata={"circle": error.args[1]})
        return ContractCheck(kept=True)

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the circle, one module per line."""
        output.print_error("These modules import each other in a circle:")
        for module in reversed(check.metadata["circle"]):
            output.print_error(f"  {module}", bold=False)
