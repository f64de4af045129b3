import { checkEdgeLease, checkOrganizationStreams, leaseKey } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import type { LeaseFollower, StoredEntry } from "./lease-store.ts";

/** The content of the bucket LEASES as this edge received it. */
export type LeaseContent = {
  readonly edges: ReadonlyMap<string, EdgeState>;
  readonly organizations: ReadonlyMap<string, OrganizationState>;
  /** Applies an entry unless a newer one was applied. */
  apply(key: string, entry: StoredEntry): void;
};

export type EdgeState = {
  /** 0 for an edge that only an organization's entry names. */
  revision: number;
  isEnded: boolean;
  renewals: number;
  /** Time for which this edge has watched it without a renewal. */
  silentMs: number;
};

export type OrganizationState = {
  revision: number;
  /** Counts by edge; undefined: the entry is not valid in this release, so nothing may replace it. */
  holders: Readonly<Record<string, number>> | undefined;
};

const edgePrefix = leaseKey.edge("");
const organizationPrefix = leaseKey.organization("");

function createLeaseContent(logger: Logger): LeaseContent {
  const edges = new Map<string, EdgeState>();
  const organizations = new Map<string, OrganizationState>();

  function applyEdge(edgeId: string, { value, revision }: StoredEntry): void {
    if (revision < (edges.get(edgeId)?.revision ?? 0)) return;
    const checked = checkEdgeLease(value);
    const isEnded = checked.ok && checked.value.state === "ended";
    const renewals = checked.ok && checked.value.state === "held" ? checked.value.renewals : 0;
    edges.set(edgeId, { revision, isEnded, renewals, silentMs: 0 });
  }

  function applyOrganization(organizationId: string, { value, revision }: StoredEntry): void {
    if (revision <= (organizations.get(organizationId)?.revision ?? 0)) return;
    const checked = checkOrganizationStreams(value ?? { holders: {} });
    const holders = checked.ok ? checked.value.holders : undefined;
    organizations.set(organizationId, { revision, holders });
    if (!checked.ok)
      logger.error(
        { organization_id: organizationId, problem: checked.problem },
        "the entry of an organization's open streams is not valid; its limited streams are not admitted",
      );
    for (const edgeId of Object.keys(holders ?? {}))
      if (!edges.has(edgeId))
        edges.set(edgeId, { revision: 0, isEnded: false, renewals: 0, silentMs: 0 });
  }

  return {
    edges,
    organizations,
    apply(key, entry) {
      if (key.startsWith(edgePrefix)) applyEdge(key.slice(edgePrefix.length), entry);
      if (key.startsWith(organizationPrefix))
        applyOrganization(key.slice(organizationPrefix.length), entry);
    },
  };
}

/** The latest complete content. While the bucket is read again, the previous content stays. */
export type FollowedContent = { readonly content: LeaseContent; readonly follower: LeaseFollower };

export function followContent(options: {
  logger: Logger;
  onCaughtUp: () => void;
}): FollowedContent {
  let shown = createLeaseContent(options.logger);
  let read = shown;
  return {
    get content() {
      return shown;
    },
    follower: {
      onBegin() {
        read = createLeaseContent(options.logger);
      },
      onEntry: (key, entry) => read.apply(key, entry),
      onCaughtUp() {
        shown = read;
        options.onCaughtUp();
      },
    },
  };
}
