import { describe, expect, test } from "@jest/globals";
import type { IHTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1";
import { routeTable } from "../../../gateway/src/route-table.ts";
import { ofKind, overlays, render } from "../rendered-overlay.ts";

type Spec = NonNullable<IHTTPRoute["spec"]>;

const targets = [...new Set(routeTable.map(({ target }) => target))];

test.each(overlays)(
  "the %s overlay has a Service for every target of the route table",
  (overlay) => {
    const names = ofKind(render(overlay), "Service").map(({ metadata }) => metadata.name);
    expect(names).toEqual(expect.arrayContaining(targets));
  },
);

describe("the HTTPRoute of production", () => {
  const [route, ...others] = ofKind(render("production"), "HTTPRoute");
  const rules = (route?.spec as Spec | undefined)?.rules ?? [];

  /** Returns the Service of a path, as controllers choose it: exact paths, then expressions, then the longest prefix. */
  function serviceOf(path: string): string | undefined {
    const matches = rules.flatMap(({ matches = [], backendRefs }) =>
      matches.map((match) => ({ ...match.path, service: backendRefs?.[0]?.name })),
    );
    const ranked = matches
      .filter(({ type, value = "" }) => {
        if (type === "Exact") return path === value;
        if (type === "RegularExpression") return new RegExp(value).test(path);
        return path === value || path.startsWith(value.replace(/\/?$/, "/"));
      })
      .map(({ type, value = "", service }) => {
        const rank = type === "Exact" ? 2_000 : type === "RegularExpression" ? 1_000 : value.length;
        return { rank, service };
      });
    return ranked.toSorted((one, other) => other.rank - one.rank)[0]?.service;
  }

  test("is the only one, limits no time, and names an existing Service in each rule", () => {
    expect(others).toEqual([]);
    const services = ofKind(render("production"), "Service").map(({ metadata }) => metadata.name);
    for (const { timeouts, backendRefs = [] } of rules) {
      expect(timeouts).toEqual({ request: "0s" });
      expect(backendRefs).toEqual([{ name: expect.any(String), port: 8080 }]);
      expect(services).toContain(backendRefs[0]?.name);
    }
  });

  test.each(routeTable)("sends $pattern to $target", ({ pattern, target }) => {
    const path = pattern.replaceAll(/:\w+/g, "0199").replace("*", "flags");
    expect(serviceOf(path)).toBe(target);
  });
});

test("the local overlay finds the pods of every service by a name in the configuration of HAProxy", () => {
  const objects = render("local");
  const [{ data = {} } = { data: {} }] = ofKind(objects, "ConfigMap").filter(({ metadata }) =>
    metadata.name.startsWith("gateway-"),
  );
  const names = [...(data["haproxy.cfg"] ?? "").matchAll(/presetenv \w+_ADDRESS (\S+):8080/g)];
  const headless = ofKind(objects, "Service")
    .filter(({ spec }) => (spec as { clusterIP?: string }).clusterIP === "None")
    .map(({ metadata }) => `${metadata.name}.halyard.svc.cluster.local`);
  expect(names).toHaveLength(targets.length);
  expect(headless).toEqual(expect.arrayContaining(names.map(([, name]) => name)));
});
