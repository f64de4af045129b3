import { checkOrganizationStreams, leaseKey } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import type { LeaseStore, Written } from "./lease-store.ts";

/** The entry that says which leases hold an organization's slots, as this edge knows it. */
export type OrganizationEntry = {
  /** Whether it is known without asking. What is known may be out of date: then no write succeeds. */
  readonly isKnown: boolean;
  /** What is known, or else what is read; undefined when it cannot be found out. */
  holders(): Promise<Holders | undefined>;
  write(holders: Holders): Promise<Written>;
  /** From now on it is not known. */
  forget(): void;
};

export type Holders = Readonly<Record<string, number>>;

const nothingYet = { holders: {}, revision: 0 };

export function createOrganizationEntry(options: {
  store: LeaseStore;
  organizationId: string;
  logger: Logger;
}): OrganizationEntry {
  const { store, organizationId, logger } = options;
  const key = leaseKey.organization(organizationId);
  let known: { holders: Holders; revision: number } | undefined;
  /** Of which the log has been told; it is read again and again. */
  let notUnderstood: number | undefined;

  async function read(): Promise<typeof known> {
    const found = await store.read(key);
    if (found.outcome === "unknown") return undefined;
    if (found.entry === undefined) return nothingYet;
    const { value, revision } = found.entry;
    if (value === null) return { holders: {}, revision };
    const checked = checkOrganizationStreams(value);
    if (checked.ok) return { holders: checked.value.holders, revision };
    // It may be a later version's, so nothing is written over it, and nobody is given a slot.
    if (revision !== notUnderstood)
      logger.error(
        { organization_id: organizationId, problem: checked.problem },
        "who holds an organization's slots is not understood",
      );
    notUnderstood = revision;
    return undefined;
  }

  return {
    get isKnown() {
      return known !== undefined;
    },
    async holders() {
      known ??= await read();
      return known?.holders;
    },
    async write(holders) {
      const written = await store.write(key, { holders }, known?.revision ?? 0);
      known = written.outcome === "written" ? { holders, revision: written.revision } : undefined;
      return written;
    },
    forget() {
      known = undefined;
    },
  };
}
