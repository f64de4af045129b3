import type { Logger } from "@halyard/service";
import { type ClaimParts, canClaim, claimSlots } from "./claim-slots.ts";
import { createOrganizationEntry, type OrganizationEntry } from "./organization-entry.ts";
import { createOrganizationSlots, type OrganizationSlots } from "./organization-slots.ts";
import type { SlotTimes } from "./slot-times.ts";

/** The organizations that have streams on this edge, or want some; each has one claim under way at most. */
export type Organizations = {
  of(organizationId: string): Pick<OrganizationSlots, "take" | "release">;
  /** An organization's limit is another one. */
  limitChanged(organizationId: string): void;
  /** Claims where there is a reason to, first for those who have somebody waiting. */
  claimAll(): void;
  /** What is written down for them may not be what this edge holds. */
  doubtAll(): void;
  /** Nothing is held any more. */
  loseAll(): void;
  figures(): { held: number; waiting: number };
};

type Organization = {
  slots: OrganizationSlots;
  entry: OrganizationEntry;
  claiming: Promise<void> | undefined;
};

/** Claims of organizations that nobody waits for, at the same time: few enough to leave room for others. */
const mostLanes = 20;

export function createOrganizations(
  parts: ClaimParts & {
    times: SlotTimes;
    limitOf: (organizationId: string) => number | null;
    isAway: () => boolean;
    logger: Logger;
  },
): Organizations {
  const { store, clock, times, counts, isAway, logger } = parts;
  const organizations = new Map<string, Organization>();
  let inTurn = organizations.entries();
  let lanes = 0;

  function create(organizationId: string): Organization {
    const organization: Organization = {
      slots: createOrganizationSlots({
        clock,
        times,
        limit: () => parts.limitOf(organizationId),
        isLeaseGood: () => parts.leaseId() !== undefined,
        isAway,
        onClaim: () => void claim(organizationId, organization),
        counts,
      }),
      entry: createOrganizationEntry({ store, organizationId, logger }),
      claiming: undefined,
    };
    organizations.set(organizationId, organization);
    return organization;
  }

  function claim(organizationId: string, organization: Organization): Promise<void> {
    organization.claiming ??= claimSlots(organization, parts).finally(() => {
      organization.claiming = undefined;
      // Somebody may have come in the moment between the last look and this one.
      if (organization.slots.hasClaim && canClaim(parts)) void claim(organizationId, organization);
      else forgetIfIdle(organizationId, organization);
    });
    return organization.claiming;
  }

  function forgetIfIdle(organizationId: string, organization: Organization): void {
    if (organization.slots.isIdle && organizations.get(organizationId) === organization)
      organizations.delete(organizationId);
  }

  /**
   * Some at a time: there may be thousands, and nobody waits for these. One that cannot be settled holds
   * up none but those of its lane. Who claims for all again while this goes on begins where it stands.
   */
  function claimInTurn(): void {
    inTurn = organizations.entries();
    while (lanes < mostLanes) {
      lanes += 1;
      void claimNext().finally(() => {
        lanes -= 1;
      });
    }
  }

  async function claimNext(): Promise<void> {
    for (let next = inTurn.next(); !next.done; next = inTurn.next())
      await claim(next.value[0], next.value[1]);
  }

  return {
    of: (organizationId) => (organizations.get(organizationId) ?? create(organizationId)).slots,
    limitChanged: (organizationId) => organizations.get(organizationId)?.slots.limitChanged(),
    claimAll() {
      for (const [organizationId, organization] of organizations)
        if (organization.slots.waiting > 0) void claim(organizationId, organization);
      claimInTurn();
    },
    doubtAll() {
      for (const { slots } of organizations.values()) slots.written.doubt();
    },
    loseAll() {
      for (const { slots, entry } of organizations.values()) {
        slots.lose();
        entry.forget();
      }
    },
    figures() {
      const sums = { held: 0, waiting: 0 };
      for (const { slots } of organizations.values()) {
        sums.held += slots.written.told ?? 0;
        sums.waiting += slots.waiting;
      }
      return sums;
    },
  };
}
