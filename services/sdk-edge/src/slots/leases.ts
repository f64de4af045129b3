import { checkEdgeLease, checkOrganizationStreams, leaseKey } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import type { LeaseStore, StoredEntry } from "./lease-store.ts";

export type Leases = ReturnType<typeof followLeases>;

type Content = {
  /**
   * True if the edges had time to publish their counts into this bucket. Otherwise counts may be missing, because the
   * bucket may have replaced a lost one.
   */
  isEstablished: boolean;
  /**
   * `revision` is 0 if only an organization's entry names the edge. `silentMs` is the time without a change of the
   * entry.
   */
  edges: Map<string, { revision: number; isEnded: boolean; silentMs: number }>;
  organizations: Map<string, OrganizationCounts>;
};

/** Streams by edge. */
export type OrganizationCounts = { revision: number; holders: Readonly<Record<string, number>> };

/** Three renewals take six seconds, longer than `publishWithinMs`. */
const establishedAfterRenewals = 3;

/** The content of the bucket. While the bucket is read again, the previous content stays. */
export function followLeases(
  store: LeaseStore,
  { logger, onCaughtUp }: { logger: Logger; onCaughtUp: () => void },
) {
  const empty = (): Content => ({
    isEstablished: false,
    edges: new Map(),
    organizations: new Map(),
  });
  let content = empty();
  let read = content;
  store.follow({
    onBegin() {
      read = empty();
    },
    onEntry: (key, entry) => apply(key, entry, read, logger),
    onCaughtUp() {
      content = read;
      onCaughtUp();
    },
  });
  return {
    get content(): Readonly<Content> {
      return content;
    },
    async write(key: string, value: object, over: number) {
      const replaced = content;
      const revision = await store.write(key, value, over);
      if (typeof revision === "string") return revision;
      apply(key, { value, revision }, replaced, logger);
      return "written";
    },
  };
}

/** Applies an entry unless a newer one was applied. */
function apply(key: string, entry: StoredEntry, content: Content, logger: Logger): void {
  const [kind, id = ""] = key.split(".");
  if (key === leaseKey.established) content.isEstablished = true;
  else if (kind === "edge") applyEdge(id, entry, content);
  else if (kind === "organization") applyOrganization(id, entry, content, logger);
}

function applyEdge(id: string, { value, revision }: StoredEntry, content: Content): void {
  if (revision < (content.edges.get(id)?.revision ?? 0)) return;
  const checked = checkEdgeLease(value);
  const isEnded = checked.ok && checked.value.state === "ended";
  const renewals = checked.ok && checked.value.state === "held" ? checked.value.renewals : 0;
  if (isEnded || renewals >= establishedAfterRenewals) content.isEstablished = true;
  content.edges.set(id, { revision, isEnded, silentMs: 0 });
}

function applyOrganization(
  id: string,
  { value, revision }: StoredEntry,
  { edges, organizations }: Content,
  logger: Logger,
): void {
  if (revision <= (organizations.get(id)?.revision ?? 0)) return;
  const checked = checkOrganizationStreams(value ?? { holders: {} });
  if (!checked.ok)
    logger.error(
      { organization_id: id, problem: checked.problem },
      "the entry of an organization's open streams is not valid; edges write it again",
    );
  const { holders } = checked.ok ? checked.value : { holders: {} };
  organizations.set(id, { revision, holders });
  for (const edgeId of Object.keys(holders))
    if (!edges.has(edgeId)) edges.set(edgeId, { revision: 0, isEnded: false, silentMs: 0 });
}
