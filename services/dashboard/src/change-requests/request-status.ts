import type { ChangeRequestStatus, ListedChangeRequest } from "../api/schema.d.ts";
import { approvalsText } from "../state/protection.ts";
import type { Tone } from "../ui/badge.tsx";

export const statusTexts: Readonly<Record<ChangeRequestStatus, { label: string; tone: Tone }>> = {
  draft: { label: "Draft", tone: "neutral" },
  open: { label: "Open", tone: "accent" },
  approved: { label: "Approved", tone: "on" },
  applied: { label: "Applied", tone: "on" },
  rejected: { label: "Rejected", tone: "danger" },
  withdrawn: { label: "Withdrawn", tone: "neutral" },
  stale: { label: "Stale", tone: "warning" },
};

export const isEnded = ({ status }: Pick<ListedChangeRequest, "status">): boolean =>
  status === "applied" || status === "rejected" || status === "withdrawn";

/** Returns the approvals of the current content. Those of earlier content no longer count. */
export const currentApprovals = <
  Request extends Pick<ListedChangeRequest, "approvals" | "content_hash">,
>({
  approvals,
  content_hash: current,
}: Request): Request["approvals"] =>
  approvals.filter(({ content_hash: approved }) => approved === current);

type Needed = ListedChangeRequest["needed"][number];

/** Says what an environment has and needs: "production: 1 of 2 approvals". */
export const neededText = ({ environment_name: name, given, approvals }: Needed): string =>
  `${name}: ${Math.min(given, approvals)} of ${approvalsText(approvals)}`;

/** Says which approvals are missing. Undefined if none is. */
export function missingText({ needed }: Pick<ListedChangeRequest, "needed">): string | undefined {
  const missing = needed.filter(({ given, approvals }) => given < approvals);
  if (missing.length === 0) return undefined;
  const texts = missing.map(
    ({ environment_name: name, given, approvals }) =>
      `${approvals - given} more from approvers of ${name}`,
  );
  return `Approvals are missing: ${texts.join(", ")}.`;
}

/** Largest count that the navigation shows. */
const maxCount = 99;

/** Writes the number of pending requests for the navigation. Undefined without any. */
export function countText(requests: number): string | undefined {
  if (requests === 0) return undefined;
  return requests > maxCount ? `${maxCount}+` : String(requests);
}
