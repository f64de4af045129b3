import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { IHorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2";
import { parse, stringify } from "yaml";
import { allowedArrows } from "../allowed-arrows.ts";
import { environmentOf } from "../environment.ts";
import {
  build,
  folder,
  generateSecrets,
  ofKind,
  type RenderedObject,
  render,
  workloadsOf,
} from "../rendered-overlay.ts";
import { schemaProblems } from "../schema-problems.ts";

describe("the overlay in the README", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-overlay-"));
  let objects: readonly RenderedObject[] = [];

  beforeAll(() => {
    const readme = readFileSync(join(folder, "README.md"), "utf8");
    const [, example = ""] = /```yaml\n(apiVersion: kustomize[^`]*)```/.exec(readme) ?? [];
    // The example has the optional component in comments.
    const withComponent = example.replace(/^# (components:| {2}- )/gm, "$1");
    const [, monitors = ""] =
      /```yaml\n( {2}- target: \{ kind: ServiceMonitor[^`]*)```/.exec(readme) ?? [];
    // The patches are the last list of the example.
    writeFileSync(join(directory, "kustomization.yaml"), withComponent + monitors);
    symlinkSync(join(folder, "../.."), join(directory, "halyard"));
    objects = build(directory);
  });

  afterAll(() => rmSync(directory, { recursive: true }));

  test("uses the registry for every image of Halyard", () => {
    const images = workloadsOf(objects).flatMap(({ template }) =>
      template.spec.containers.map(({ image }) => image),
    );
    const own = images.filter((image) => image?.includes("halyard/"));
    expect(own).toHaveLength(11);
    expect(own.filter((image) => !image?.startsWith("registry.example.com/"))).toEqual([]);
  });

  test("sets the trusted proxies of every service", () => {
    const all = [...objects, ...generateSecrets("production")];
    const trusted = workloadsOf(all)
      .flatMap((workload) => environmentOf(workload, all))
      .filter(({ name }) => name === "TRUSTED_PROXIES");
    expect(trusted.map(({ value }) => value)).toEqual(Array(6).fill("10.42.7.0/24"));
  });

  test("attaches the HTTPRoute to the cluster's Gateway", () => {
    expect(ofKind(objects, "HTTPRoute")[0]?.spec).toMatchObject({
      parentRefs: [{ name: "web", namespace: "ingress" }],
      hostnames: ["flags.example.com"],
    });
  });

  test("adds the label that Prometheus selects to every monitor, with the patch under Metrics", () => {
    const monitors = ofKind(objects, "ServiceMonitor", "PodMonitor");
    expect(monitors).toHaveLength(7);
    for (const { metadata } of monitors) expect(metadata.labels).toHaveProperty("release");
    expect(ofKind(objects, "ServiceMonitor")[0]?.metadata.labels).toMatchObject({
      "app.kubernetes.io/component": "service",
      "app.kubernetes.io/part-of": "halyard",
    });
  });

  test("scales the edges on CPU and streams", async () => {
    const [edges] = ofKind(objects, "HorizontalPodAutoscaler").filter(
      ({ metadata }) => metadata.name === "sdk-edge",
    );
    const metrics = (edges?.spec as IHorizontalPodAutoscaler["spec"])?.metrics;
    expect(metrics?.map(({ type }) => type)).toEqual(["Resource", "Pods"]);
    expect(await Promise.all(objects.map(schemaProblems))).toEqual(objects.map(() => []));
  });

  test("lets the doctor check the public address", () => {
    expect(addressForDoctor(objects)).toBe("https://flags.example.com");
    const balancer = { name: "balancer", labels: {}, namespace: "", address: "203.0.113.5" };
    expect(allowedArrows(objects, [balancer])).toContain("setup -> balancer: 443");
  });
});

test("the local overlay lets the doctor check HAProxy", () => {
  expect(addressForDoctor(render("local"))).toBe("http://gateway:8080");
});

const addressForDoctor = (objects: readonly RenderedObject[]) =>
  ofKind(objects, "ConfigMap").find(({ metadata }) => metadata.name.startsWith("doctor"))?.data
    ?.BASE_URL;

test("the overlay in the README has HAProxy instead of the HTTPRoute with what it adds for that", async () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-overlay-"));
  try {
    const readme = readFileSync(join(folder, "README.md"), "utf8");
    const [own, more] = [
      /```yaml\n(apiVersion: kustomize[^`]*)```/,
      /```yaml\n(components:[^`]*)```/,
    ].map((block) => parse(block.exec(readme)?.[1] ?? ""));
    const merged = { ...own, components: more.components };
    merged.patches = [...own.patches, ...more.patches];
    writeFileSync(join(directory, "kustomization.yaml"), stringify(merged));
    symlinkSync(join(folder, "../.."), join(directory, "halyard"));
    const objects = build(directory);
    expect(ofKind(objects, "HTTPRoute")).toEqual([]);
    const policies = ofKind(objects, "NetworkPolicy").map(({ metadata }) => metadata.name);
    expect(policies).toContain("from-gateway");
    expect(policies).not.toContain("from-controller");
    const gateway = workloadsOf(objects).find(({ name }) => name === "gateway");
    expect(gateway?.template.spec.containers[0]?.image).toMatch(/^haproxy:\d+\.\d+\.\d+/);
    expect(await Promise.all(objects.map(schemaProblems))).toEqual(objects.map(() => []));
  } finally {
    rmSync(directory, { recursive: true });
  }
});
