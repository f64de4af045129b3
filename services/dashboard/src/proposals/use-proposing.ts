import { createContext, use, useCallback } from "react";
import type { Environment } from "../api/schema.d.ts";
import { whyNot } from "../session/permissions.ts";
import { useKeySession } from "../session/session.tsx";
import { type Exception, needsApproval } from "../state/protection.ts";
import type { Proposal } from "./proposal.ts";

export const ProposeContext = createContext<((proposal: Proposal) => void) | undefined>(undefined);

/** A change that is made immediately or proposed. */
type Change = {
  /** The exception that the change is, if the protection has it. */
  exception?: Exception | undefined;
  make: () => void;
  proposal: () => Proposal;
};

/**
 * Decides between a change and a change request. `reached` is the environment that the change reaches: a protected one
 * if there is one. A person without the role for a change proposes even an exception.
 */
export function useProposing(reached: Environment | undefined) {
  const propose = use(ProposeContext);
  const { me } = useKeySession();
  if (propose === undefined) throw new Error("useProposing needs a ProposalsProvider");
  const mayMake =
    reached === undefined ||
    whyNot({ me }, "change_states", { ...reached, protected: null }) === undefined;
  const proposes = useCallback(
    (exception?: Exception) =>
      reached !== undefined &&
      reached.protected !== null &&
      (!mayMake || needsApproval(reached, exception)),
    [reached, mayMake],
  );
  const change = useCallback(
    ({ exception, make, proposal }: Change) => {
      if (proposes(exception)) propose(proposal());
      else make();
    },
    [propose, proposes],
  );
  return { isProposed: proposes(), proposes, change };
}
