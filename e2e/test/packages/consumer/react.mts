import { HalyardProvider, useFlag, useFlags, useValue } from "@halyard/react";
import { createElement, type ReactElement } from "react";

/** Uses the types of the package for React. It is compiled and not run. */
function Checkout(): ReactElement {
  const isNew: boolean = useFlag("new-checkout", false);
  const isDark: boolean = useFlags()["dark-mode"] ?? false;
  const color: string = useValue("checkout-color", "black");
  return createElement("p", { style: { color } }, isNew && isDark ? "new" : "old");
}

export function App(): ReactElement {
  const options = { baseUrl: "", clientKey: "", context: { id: "user-1" } };
  return createElement(HalyardProvider, { options, children: createElement(Checkout) });
}
