import { describe, expect, test } from "@jest/globals";
import { environmentOf } from "../environment.ts";
import {
  generateSecrets,
  ofKind,
  overlays,
  type RenderedObject,
  render,
  settingsIn,
  workloadsOf,
} from "../rendered-overlay.ts";

type Labels = Readonly<Record<string, string>>;
type Certificate = { secretName: string; dnsNames?: string[] };
type ServicePort = { name: string; port: number; targetPort: string };
type Selecting = { selector: { matchLabels: Labels } };

/** Returns the name of the Service that CloudNativePG creates for the primary of a Cluster. */
const primaryOf = (cluster: string) => `${cluster}-rw`;

const isSelected = (selector: Labels, labels: Labels = {}) =>
  Object.entries(selector).every(([key, value]) => labels[key] === value);

const distinct = (names: readonly string[]) => [...new Set(names)].toSorted();

/** Returns the names under a key, as in `serviceAccountName: x` and `secretRef: { name: x }`. */
function referencesIn(value: unknown, key: RegExp): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([field, child]) => {
    if (key.test(field) && typeof child === "string") return [child];
    if (key.test(field) && typeof child?.name === "string") return [child.name];
    return referencesIn(child, key);
  });
}

describe.each(overlays)("the %s overlay", (overlay) => {
  const objects = [...render(overlay), ...generateSecrets(overlay)];
  const workloads = workloadsOf(objects);
  const certificates = ofKind(objects, "Certificate").map(({ spec }) => spec as Certificate);
  const names = (kind: string) => ofKind(objects, kind).map(({ metadata }) => metadata.name);
  const selectedBy = (selector: Labels) =>
    workloads
      .filter(({ template }) => isSelected(selector, template.metadata?.labels))
      .map(({ name }) => name);
  const referenced = (key: RegExp) =>
    distinct(
      render(overlay)
        .filter(({ kind }) => kind !== "Certificate")
        .flatMap((object) => referencesIn(object, key)),
    );

  test("has exactly the Secrets, ConfigMaps and ServiceAccounts that it uses", () => {
    const certified = certificates.map(({ secretName }) => secretName);
    expect(referenced(/secret(?:Name|Ref)?$/i)).toEqual(
      distinct([...names("Secret"), ...certified]),
    );
    const settings = settingsIn(objects).map(({ metadata }) => metadata.name);
    expect(referenced(/^configMap(?:Ref)?$/)).toEqual(distinct(settings));
    expect(referenced(/^serviceAccountName$/)).toEqual(distinct(names("ServiceAccount")));
  });

  test.each(workloads)("mounts exactly the volumes of $kind $name", ({ template, claims }) => {
    const { containers, volumes = [] } = template.spec;
    const mounted = containers.flatMap(({ volumeMounts = [] }) => volumeMounts);
    expect(mounted.map(({ name }) => name).toSorted()).toEqual(
      [...volumes.map(({ name }) => name), ...claims].toSorted(),
    );
  });

  test.each(workloads)("mounts every file that a variable of $kind $name refers to", (workload) => {
    const mounts = workload.template.spec.containers.flatMap(
      ({ volumeMounts = [] }) => volumeMounts,
    );
    const paths = environmentOf(workload, objects).flatMap(
      ({ value }) => value.match(/(?:^|(?<=sslrootcert=))\/[\w./-]+$/g) ?? [],
    );
    const unmounted = paths.filter(
      (path) => !mounts.some(({ mountPath }) => path.startsWith(`${mountPath}/`)),
    );
    expect(unmounted).toEqual([]);
  });

  test("has one workload for every Service, with the ports of the Service", () => {
    for (const { spec } of ofKind(objects, "Service")) {
      const { selector, ports } = spec as { selector: Labels; ports: ServicePort[] };
      expect(selectedBy(selector)).toHaveLength(1);
      const open = workloads
        .filter(({ name }) => selectedBy(selector).includes(name))
        .flatMap(({ template }) => template.spec.containers.flatMap((one) => one.ports ?? []));
      for (const { port, targetPort } of ports)
        expect(open).toContainEqual({ name: targetPort, containerPort: port });
    }
  });

  test("has one workload for every controller, disruption budget and autoscaler", () => {
    for (const { metadata, spec } of ofKind(
      objects,
      "Deployment",
      "StatefulSet",
      "PodDisruptionBudget",
    ))
      expect(selectedBy((spec as Selecting).selector.matchLabels)).toEqual([metadata.name]);
    for (const { metadata, spec } of ofKind(objects, "HorizontalPodAutoscaler"))
      expect(spec).toMatchObject({ scaleTargetRef: { kind: "Deployment", name: metadata.name } });
    for (const { metadata, spec } of ofKind(objects, "Deployment")) {
      const isScaled = names("HorizontalPodAutoscaler").includes(metadata.name);
      expect(Object.hasOwn(spec as object, "replicas")).toBe(!isScaled);
    }
  });

  test.each(workloads)(
    "spreads the pods of $kind $name by their own labels",
    ({ name, template }) => {
      const labels = template.metadata?.labels ?? {};
      for (const constraint of template.spec.topologySpreadConstraints ?? []) {
        const { labelSelector, matchLabelKeys = [] } = constraint;
        const own = matchLabelKeys.filter((key) => key in labels).map((key) => [key, labels[key]]);
        expect(selectedBy({ ...labelSelector?.matchLabels, ...Object.fromEntries(own) })).toEqual([
          name,
        ]);
      }
    },
  );

  test("scrapes every service if Prometheus is expected", () => {
    const scraped = ofKind(objects, "ServiceMonitor").flatMap(({ spec }) => {
      const { matchLabels } = (spec as Selecting).selector;
      expect(spec).toMatchObject({ endpoints: [{ port: "metrics" }] });
      return ofKind(objects, "Service")
        .filter(({ metadata }) => isSelected(matchLabels, metadata.labels))
        .map(({ metadata }) => metadata.name);
    });
    expect(scraped.toSorted()).toEqual(overlay === "local" ? [] : names("Deployment").toSorted());
  });

  test("refers only to servers that exist and whose certificates have these names", () => {
    const hosts = hostsOf(objects);
    const services = [...names("Service"), ...names("Cluster").map(primaryOf)];
    expect(services).toEqual(expect.arrayContaining(hosts.map((host) => host.split(".").at(-1))));
    const certified = certificates.flatMap(({ dnsNames = [] }) => dnsNames);
    expect(certified).toEqual(expect.arrayContaining(overlay === "local" ? [] : hosts));
  });
});

/** Returns the hosts in the URLs of NATS and PostgreSQL, and in the routes of the NATS cluster. */
function hostsOf(objects: readonly RenderedObject[]): string[] {
  const urls = workloadsOf(objects)
    .flatMap((workload) => environmentOf(workload, objects))
    .filter(({ name }) => /^(?:NATS|POSTGRES\w*)_URL$/.test(name))
    .flatMap(({ value }) => value.split(","));
  const routes = ofKind(objects, "ConfigMap").flatMap(
    ({ data }) => data?.["cluster.conf"]?.match(/nats:\/\/\S+/g) ?? [],
  );
  return distinct([...urls, ...routes].map((url) => new URL(url).hostname));
}
