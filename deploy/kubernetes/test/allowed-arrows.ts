import { BlockList } from "node:net";
import type {
  INetworkPolicy,
  INetworkPolicyPeer,
  INetworkPolicyPort,
} from "kubernetes-models/networking.k8s.io/v1";
import { ofKind, type RenderedObject, workloadsOf } from "./rendered-overlay.ts";

/** One end of a connection: the pods of a workload, or a peer outside the namespace. */
export type Party = {
  name: string;
  labels: Readonly<Record<string, string>>;
  namespace: string;
  address: string;
};

type Policy = NonNullable<INetworkPolicy["spec"]>;
type Labels = Readonly<Record<string, string>>;
type Selector = NonNullable<INetworkPolicyPeer["podSelector"]>;

const everyPort = "every port";

const podAddress = "10.244.0.7";

/** Returns the pods of the overlay. Those of CloudNativePG have the labels that its documentation names. */
function podsOf(objects: readonly RenderedObject[]): Party[] {
  const rendered = workloadsOf(objects).map(({ name, template }) => ({
    name,
    labels: (template.metadata?.labels ?? {}) as Labels,
  }));
  const clusters = ofKind(objects, "Cluster").map(({ metadata: { name } }) => ({
    name,
    labels: { "cnpg.io/cluster": name, "app.kubernetes.io/name": "postgresql" },
  }));
  return [...rendered, ...clusters].map((pods) => ({
    ...pods,
    namespace: "halyard",
    address: podAddress,
  }));
}

/**
 * Returns the connections that the NetworkPolicies of an overlay allow, as `from -> to: ports`: between its pods, and
 * between its pods and the others.
 */
export function allowedArrows(
  objects: readonly RenderedObject[],
  others: readonly Party[],
): string[] {
  const pods = podsOf(objects);
  const policies = ofKind(objects, "NetworkPolicy").map(({ spec }) => spec as Policy);
  const parties = [...pods, ...others];
  return parties.flatMap((from) =>
    parties.flatMap((to) => {
      if (!pods.includes(from) && !pods.includes(to)) return [];
      const leaving = pods.includes(from) ? allowed(policies, "Egress", from, to) : [everyPort];
      const entering = pods.includes(to) ? allowed(policies, "Ingress", to, from) : [everyPort];
      const ports = both(leaving, entering);
      return ports.length === 0 ? [] : [`${from.name} -> ${to.name}: ${ports.join(", ")}`];
    }),
  );
}

function both(some: readonly string[], others: readonly string[]): readonly string[] {
  if (some.includes(everyPort)) return others;
  if (others.includes(everyPort)) return some;
  return some.filter((port) => others.includes(port));
}

/**
 * Returns the ports on which a pod's policies allow connections with a peer. Without a policy, all ports are allowed.
 */
function allowed(
  policies: readonly Policy[],
  direction: "Ingress" | "Egress",
  pod: Party,
  peer: Party,
): string[] {
  const applying = policies.filter(
    ({ podSelector, policyTypes }) =>
      matches(podSelector ?? {}, pod.labels) && (policyTypes ?? []).includes(direction),
  );
  if (applying.length === 0) return [everyPort];
  const rules = applying.flatMap(({ ingress = [], egress = [] }) =>
    direction === "Ingress"
      ? ingress.map(({ from, ports }) => ({ peers: from, ports }))
      : egress.map(({ to, ports }) => ({ peers: to, ports })),
  );
  const ports = rules
    .filter(({ peers }) => peers === undefined || peers.some((one) => includes(one, peer)))
    .flatMap((rule) => rule.ports?.map(portName) ?? [everyPort]);
  return [...new Set(ports)];
}

function portName({ port, protocol = "TCP" }: INetworkPolicyPort): string {
  return protocol === "TCP" ? String(port) : `${port}/${protocol}`;
}

function includes(
  { podSelector, namespaceSelector, ipBlock }: INetworkPolicyPeer,
  party: Party,
): boolean {
  if (ipBlock !== undefined)
    return isIn(ipBlock.cidr, party) && !(ipBlock.except ?? []).some((cidr) => isIn(cidr, party));
  const inNamespace =
    namespaceSelector === undefined
      ? party.namespace === "halyard"
      : matches(namespaceSelector, { "kubernetes.io/metadata.name": party.namespace });
  return inNamespace && matches(podSelector ?? {}, party.labels);
}

function isIn(cidr: string, { address }: Party): boolean {
  const [start = "", prefix] = cidr.split("/");
  const family = start.includes(":") ? "ipv6" : "ipv4";
  const range = new BlockList();
  range.addSubnet(start, Number(prefix), family);
  return range.check(address, address.includes(":") ? "ipv6" : "ipv4");
}

function matches({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      if (operator !== "In") throw new Error(`The operator ${operator} is not supported here.`);
      return values.includes(labels[key] ?? "");
    })
  );
}
