import {
  createTestClient,
  HalyardProvider,
  useFlag,
  useFlags,
  useHalyardClient,
  useReady,
  useSuspenseFlag,
  useValue,
} from "@halyard/react";
import {
  createElement,
  type FunctionComponent,
  type ReactNode,
  StrictMode,
  Suspense,
  version,
} from "react";
import { createRoot, hydrateRoot } from "react-dom/client";
import { renderToString } from "react-dom/server";

/** Runs in the browser. The test calls its functions and reads what the page shows. */
type ProviderProps = Parameters<typeof HalyardProvider>[0];

let renders = 0;
let colorRenders = 0;
let limitsRenders = 0;
let switchUser = (_id: string): unknown => undefined;

function Checkout(): ReactNode {
  renders += 1;
  const client = useHalyardClient();
  switchUser = (id) => client.setContext({ id });
  return createElement("output", { id: "flag" }, useFlag("checkout") ? "new" : "old");
}
function Flags(): ReactNode {
  return createElement("output", { id: "flags" }, JSON.stringify(useFlags()));
}
function Color(): ReactNode {
  colorRenders += 1;
  return createElement("output", { id: "color" }, useValue("color", "grey"));
}
function Limits(): ReactNode {
  limitsRenders += 1;
  const { seats } = useValue("limits", { seats: 0 });
  return createElement("output", { id: "limits" }, seats);
}
function Suspending(): ReactNode {
  return createElement("output", { id: "suspending" }, useSuspenseFlag("checkout") ? "new" : "old");
}
function ShowingStored(): ReactNode {
  const value = useSuspenseFlag("checkout", false, { stored: "show" });
  return createElement("output", { id: "stored" }, value ? "new" : "old", String(useReady()));
}

function tree(props: ProviderProps, ...components: FunctionComponent[]): ReactNode {
  const children = components.map((component) => createElement(component, { key: component.name }));
  const fallback = createElement("output", { id: "loading" }, "loading");
  return createElement(
    StrictMode,
    {},
    createElement(HalyardProvider, props, createElement(Suspense, { fallback }, children)),
  );
}

function element(): HTMLElement {
  return document.querySelector("main") as HTMLElement;
}

const testClient = createTestClient<string>({
  checkout: false,
  color: "blue",
  limits: { value: { seats: 5 }, variation: "small" },
});
let root: ReturnType<typeof createRoot> | undefined;
const recovered: string[] = [];
/** Each text that the page has shown. */
const shown: string[] = [];

Object.assign(globalThis, {
  page: {
    recovered,
    shown,
    renders: () => renders,
    version: () => version,
    switchUser: (id: string) => switchUser(id),
    colorRenders: () => colorRenders,
    limitsRenders: () => limitsRenders,
    setColor: (value: string) => testClient.set("color", value),
    renderValues() {
      root = createRoot(element());
      root.render(tree({ client: testClient }, Color, Limits));
    },
    renderEdgeValues(options: ProviderProps["options"]) {
      root = createRoot(element());
      root.render(tree({ options } as ProviderProps, Color, Limits));
    },
    setFlag: (value: boolean) => testClient.set("checkout", value),
    setOther: (value: boolean) => testClient.set("other", value),
    renderTestClient() {
      root = createRoot(element());
      root.render(tree({ client: testClient }, Checkout));
    },
    render(options: ProviderProps["options"]) {
      new MutationObserver(() => shown.push(element().textContent ?? "")).observe(element(), {
        ...{ childList: true, subtree: true, characterData: true },
      });
      root = createRoot(element());
      root.render(tree({ options } as ProviderProps, Flags, Suspending));
    },
    renderStored(options: ProviderProps["options"]) {
      root = createRoot(element());
      root.render(tree({ options } as ProviderProps, ShowingStored));
    },
    rerender: (options: ProviderProps["options"]) =>
      root?.render(tree({ options } as ProviderProps, Flags, Suspending)),
    unmount: () => root?.unmount(),
    hydrate(options: ProviderProps["options"]) {
      const serverTree = tree({ options } as ProviderProps, Checkout, Flags, Suspending, Color);
      element().innerHTML = renderToString(serverTree);
      shown.push(element().textContent ?? "");
      hydrateRoot(element(), serverTree, {
        onRecoverableError: (error) => void recovered.push(String(error)),
      });
    },
  },
});
