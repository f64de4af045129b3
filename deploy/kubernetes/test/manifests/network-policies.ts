import { describe, expect, test } from "@jest/globals";
import { allowedArrows, type Party } from "../allowed-arrows.ts";
import { type Overlay, overlays, render } from "../rendered-overlay.ts";

const pod = (name: string, namespace: string, labels: Record<string, string>): Party => ({
  name,
  labels,
  namespace,
  address: "10.244.0.9",
});

/** Returns an address outside the pods of the cluster. */
const host = (address: string): Party => ({ name: address, labels: {}, namespace: "", address });

const metadataService = "169.254.169.254";
const privateHosts = [
  "10.0.0.5",
  "172.16.0.5",
  "192.168.0.5",
  "100.64.0.5",
  metadataService,
  "fd00::5",
];

const others: readonly Party[] = [
  pod("DNS", "kube-system", { "k8s-app": "kube-dns" }),
  pod("Prometheus", "monitoring", { "app.kubernetes.io/name": "prometheus" }),
  pod("CloudNativePG", "cnpg-system", { "app.kubernetes.io/name": "cloudnative-pg" }),
  pod("proxy of the Gateway", "gateway-system", {}),
  pod("another pod", "default", { "app.kubernetes.io/name": "gateway" }),
  ...["203.0.113.5", "2606:4700::5", ...privateHosts].map(host),
];

const services = ["management", "scheduler", "sdk-edge", "usage-metering", "webhook-dispatcher"];
const behindProxies = [...services, "dashboard"];
const withSchema = ["management", "scheduler", "usage-metering", "webhook-dispatcher"];
const databaseClients = [
  ...withSchema,
  ...withSchema.map((service) => `migrate-${service}`),
  "setup",
];

/** The connections of the architecture, which both overlays allow. */
const architecture: readonly string[] = [
  ...[...services, "setup"].map((client) => `${client} -> nats: 4222`),
  ...databaseClients.map((client) => `${client} -> postgres: 5432`),
  ...["203.0.113.5", "2606:4700::5"].map((address) => `webhook-dispatcher -> ${address}: 443`),
  ...[...databaseClients, "dashboard", "nats", "sdk-edge"].map(
    (name) => `${name} -> DNS: 53/UDP, 53`,
  ),
  ...behindProxies.map((service) => `Prometheus -> ${service}: 9090`),
  "nats -> nats: 6222",
];

const expected: Record<Overlay, readonly string[]> = {
  local: [
    ...architecture,
    ...others
      .filter(({ name }) => name !== "Prometheus")
      .map(({ name }) => `${name} -> gateway: 8080, 8443`),
    "Prometheus -> gateway: 8080, 8443, 9090",
    ...behindProxies.map((service) => `gateway -> ${service}: 8080`),
    "gateway -> DNS: 53/UDP, 53",
    "setup -> gateway: 8080",
    "postgres -> DNS: 53/UDP, 53",
  ],
  // Instances of CloudNativePG connect to each other, to their operator, and to the API server at an unknown address.
  production: [
    ...architecture,
    ...behindProxies.map((service) => `proxy of the Gateway -> ${service}: 8080`),
    "postgres -> DNS: 53/UDP, 53, 443, 6443",
    "postgres -> postgres: 5432, 8000",
    "CloudNativePG -> postgres: 5432, 8000",
    "Prometheus -> postgres: 9187",
    ...others
      .filter(({ name }) => name !== "DNS")
      .map(({ name }) => `postgres -> ${name}: 443, 6443`),
  ],
};

describe.each(overlays)("the NetworkPolicies of the %s overlay", (overlay) => {
  const allowed = allowedArrows(render(overlay), others);

  test("allow exactly the connections of the architecture", () => {
    expect(allowed.toSorted()).toEqual(expected[overlay].toSorted());
  });

  test("block edges from PostgreSQL, and webhooks from private addresses", () => {
    expect(allowed.filter((arrow) => arrow.startsWith("sdk-edge -> postgres"))).toEqual([]);
    const inward = privateHosts.map((address) => `webhook-dispatcher -> ${address}`);
    expect(allowed.filter((arrow) => inward.some((start) => arrow.startsWith(start)))).toEqual([]);
  });
});
