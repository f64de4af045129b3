import { describe, expect, test } from "@jest/globals";
import type { IDeployment } from "kubernetes-models/apps/v1";
import { ofKind, overlays, render, workloadsOf } from "../rendered-overlay.ts";

/** A service exits within this time after SIGTERM. */
const drainSeconds = 20;

/** Nodes and load balancers need a few seconds to remove the address of a terminating pod. */
const shortestPreStopSeconds = 5;

/** Matches lame_duck_grace_period and lame_duck_duration in nats.conf. */
const lameDuck = /lame_duck_grace_period: (\d+)s\s+lame_duck_duration: (\d+)s/;

describe.each(overlays)("the %s overlay", (overlay) => {
  const objects = render(overlay);
  const services = workloadsOf(objects).filter(({ kind }) => kind === "Deployment");

  test.each(services)("gives $name time to drain", ({ template }) => {
    const { containers, terminationGracePeriodSeconds = 0 } = template.spec;
    const preStop = containers[0]?.lifecycle?.preStop?.sleep?.seconds ?? 0;
    expect(preStop).toBeGreaterThanOrEqual(shortestPreStopSeconds);
    expect(terminationGracePeriodSeconds).toBeGreaterThan(preStop + drainSeconds);
  });

  test.each(services)("probes $name on its metrics port", ({ name, template }) => {
    const healthz = { httpGet: { path: "/healthz", port: "metrics" } };
    expect(template.spec.containers[0]).toMatchObject({
      ports: expect.arrayContaining([{ name: "metrics", containerPort: 9090 }]),
      startupProbe: healthz,
      livenessProbe: name === "gateway" ? { tcpSocket: { port: "metrics" } } : healthz,
      readinessProbe: { httpGet: { path: "/readyz", port: "metrics" } },
    });
  });

  test("stops pods only after their replacements are ready", () => {
    for (const { spec } of ofKind(objects, "Deployment"))
      expect((spec as IDeployment["spec"])?.strategy?.rollingUpdate?.maxUnavailable).toBe(0);
  });

  test("gives NATS time to move its clients to other servers", () => {
    const nats = workloadsOf(objects).find(({ name }) => name === "nats");
    const [config] = ofKind(objects, "ConfigMap").flatMap(({ data }) => data?.["nats.conf"] ?? []);
    const [, grace, duration] = lameDuck.exec(config ?? "") ?? [];
    expect(nats?.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(
      Number(grace) + Number(duration),
    );
  });
});
