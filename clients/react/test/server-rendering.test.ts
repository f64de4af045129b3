import {
  createTestClient,
  HalyardProvider,
  useFlag,
  useFlags,
  useReady,
  useSuspenseFlag,
  useValue,
} from "@halyard/react";
import { createTestClient as createServerClient } from "@halyard/server-sdk";
import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { createElement, Suspense } from "react";
import { renderToStaticMarkup, renderToString } from "react-dom/server";

/** Rendering on a server: a provider with options renders from bootstrapped values, and connects to nothing. */
const options = {
  baseUrl: "http://127.0.0.1:9",
  clientKey: `hc_abcdefghijklmnop_${"s".repeat(43)}`,
  fetch: () => {
    throw new Error("A server must not connect");
  },
};

function Checkout(): string {
  return useFlag("checkout") ? "new" : "old";
}
function SuspendingCheckout(): string {
  return useSuspenseFlag("checkout") ? "new" : "old";
}
function AllFlags(): string {
  return JSON.stringify(useFlags()).replaceAll('"', "'");
}

function Color(): string {
  return useValue("color", "grey");
}
function Seats(): string {
  return String(useValue("limits", { seats: 1 }).seats);
}

const component = createElement;

describe("given bootstrapped values", () => {
  it.each([
    ["useFlag", Checkout, "new"],
    ["useSuspenseFlag", SuspendingCheckout, "new"],
    ["useFlags", AllFlags, "{&#x27;checkout&#x27;:true}"],
    ["useValue of a text", Color, "blue"],
    ["useValue of an object", Seats, "5"],
  ])("%s renders them", (_, Component, html) => {
    const bootstrap = {
      checkout: true,
      color: { value: "blue", variation: "cold" },
      limits: { value: { seats: 5 }, variation: "small" },
    };
    const children = component(Component);
    expect(renderToString(component(HalyardProvider, { options, bootstrap, children }))).toBe(html);
    const withOptions = { options: { ...options, bootstrap }, children };
    expect(renderToString(component(HalyardProvider, withOptions))).toBe(html);
  });
});

describe("given the values of a client of the server SDK", () => {
  it("renders them", () => {
    const server = createServerClient({ checkout: true, color: "blue", limits: { seats: 5 } });
    const children = [Checkout, Color, Seats].map((each, key) => component(each, { key }));
    const bootstrap = server.allValues({ id: "user-1" });
    expect(renderToStaticMarkup(component(HalyardProvider, { options, bootstrap, children }))).toBe(
      "newblue5",
    );
  });
});

describe("given a client whose values are not current", () => {
  it("useReady is false on a server", () => {
    const children = component(() => String(useReady()));
    expect(renderToString(component(HalyardProvider, { options, children }))).toBe("false");
  });
});

describe("given no values", () => {
  it("renders the fallback and does not suspend", () => {
    const tree = component(
      Suspense,
      { fallback: "loading" },
      component(Checkout),
      component(SuspendingCheckout),
      component(Color),
    );
    const html = renderToString(component(HalyardProvider, { options, children: tree }));
    expect(html).toContain("old");
    expect(html).toContain("grey");
    expect(html).not.toContain("loading");
  });
});

describe("given a test client", () => {
  it("renders its values", () => {
    const client = createTestClient({ checkout: true });
    const children = component(Checkout);
    expect(renderToString(component(HalyardProvider, { client, children }))).toBe("new");
  });
});

describe("given no provider", () => {
  afterEach(() => void jest.restoreAllMocks());

  it("renders the fallback, and logs that once", () => {
    const logged: unknown[] = [];
    jest.spyOn(console, "error").mockImplementation((line) => void logged.push(line));
    expect(renderToString(component("p", {}, component(Checkout), component(Checkout)))).toContain(
      "old",
    );
    expect(logged).toEqual([expect.stringContaining("outside of HalyardProvider")]);
  });
});
