import { HalyardProvider, useFlag, useFlags } from "@halyard/react";
import { createElement, type ReactElement } from "react";

/** Uses the types of the package for React. It is compiled and not run. */
function Checkout(): ReactElement {
  const isNew: boolean = useFlag("new-checkout", false);
  const isDark: boolean = useFlags()["dark-mode"] ?? false;
  return createElement("p", null, isNew && isDark ? "new" : "old");
}

export function App(): ReactElement {
  const options = { baseUrl: "", clientKey: "", context: { id: "user-1" } };
  return createElement(HalyardProvider, { options, children: createElement(Checkout) });
}
