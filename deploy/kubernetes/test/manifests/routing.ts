import { describe, expect, test } from "@jest/globals";
import type { IHTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1";
import { routeTable } from "../../../gateway/src/route-table.ts";
import { environmentOf } from "../environment.ts";
import { ofKind, overlays, render, workloadsOf } from "../rendered-overlay.ts";

describe.each(overlays)("the %s overlay", (overlay) => {
  const objects = render(overlay);
  const addresses = ofKind(objects, "Service").flatMap(({ metadata, spec }) =>
    (spec as { ports: { port: number }[] }).ports.map(
      ({ port }) => `http://${metadata.name}:${port}`,
    ),
  );
  const gateway = workloadsOf(objects).filter(({ name }) => name === "gateway");
  const upstreams = gateway
    .flatMap((workload) => environmentOf(workload, objects))
    .filter(({ name }) => name.startsWith("UPSTREAM_"));

  test("gives the gateway an upstream for every service of its route table", () => {
    const routed = [...new Set(routeTable.map(({ service }) => service))];
    const variables = routed.map((service) => ({
      name: `UPSTREAM_${service.toUpperCase().replaceAll("-", "_")}_URL`,
      value: `http://${service}:8080`,
      source: "ConfigMap",
    }));
    expect(upstreams).toEqual(expect.arrayContaining(variables));
    expect(upstreams).toHaveLength(variables.length);
  });

  test("has a Service for every upstream", () => {
    expect(addresses).toEqual(expect.arrayContaining(upstreams.map(({ value }) => value)));
  });
});

test("the HTTPRoute of production sends every path to the gateway", () => {
  const [route, ...others] = ofKind(render("production"), "HTTPRoute");
  expect(others).toEqual([]);
  const rules = (route?.spec as IHTTPRoute["spec"])?.rules ?? [];
  expect(rules).toHaveLength(1);
  expect(rules[0]).toMatchObject({
    matches: [{ path: { type: "PathPrefix", value: "/" } }],
    backendRefs: [{ name: "gateway", port: 8080 }],
  });
});
