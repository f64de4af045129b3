import { peerNames } from "../peers/peers-package.ts";
import { type FlagKind, targetedFlags } from "../targeting/targeted-flags.ts";
import type { LibraryName } from "./libraries.ts";

export const libraryNames: readonly LibraryName[] = ["halyard", ...peerNames];
/** Expected share of users for flags with rules or a 50 % rollout. */
const plausible = { least: 0.4, most: 0.6 };

/**
 * Verifies that all libraries return the same values. Rollouts may differ by user, because each library has
 * its own hash, but must include about as many users. `values` has a row of digits for each user.
 */
export function assertAgreement(
  values: Readonly<Record<LibraryName, readonly string[]>>,
  flagKinds: readonly FlagKind[],
): void {
  const flags = targetedFlags(values.halyard[0]?.length ?? 0, flagKinds);
  for (const library of libraryNames)
    for (const [index, { key, kind }] of flags.entries()) {
      const column = values[library].map((row) => row[index]);
      const share = column.filter((value) => value === "1").length / column.length;
      if (kind !== "constant" && (share < plausible.least || share > plausible.most))
        throw new Error(`${library}: ${key} (${kind}) is on for ${Math.round(share * 100)} %`);
      if (kind === "rollout") continue;
      const differing = column.findIndex((value, user) => value !== values.halyard[user]?.[index]);
      if (differing >= 0)
        throw new Error(`${library}: ${key} (${kind}) has another value for user ${differing}`);
    }
}
