import {
  type ChangeRequestEvent,
  type ChangeRequestEventName,
  describeProtection,
  type ProtectionEvent,
} from "@halyard/contracts";

/**
 * Events in words, for chat systems. Each text begins with the e-mail address of the actor, because the erasure of a user
 * replaces it there (erasures.ts).
 */
type ToldRequest = Omit<
  ChangeRequestEvent,
  "id" | "timestamp" | "version" | "organization_id" | "project_id"
>;

export function changeRequestText(event: ToldRequest): string {
  return `${event.triggered_by.email} ${predicates[event.event](event)}`;
}

const predicates: Readonly<Record<ChangeRequestEventName, (event: ToldRequest) => string>> = {
  "change_request.opened": (event) =>
    event.change_request.status === "approved"
      ? `opened a change request that needs no approval: ${describe(event)}`
      : `asks for an approval: ${describe(event)}`,
  "change_request.approved": (event) => `approved: ${describe(event)}`,
  "change_request.rejected": (event) => `rejected: ${describe(event)}${quote(event.comment)}`,
  "change_request.applied": (event) =>
    event.cause === "scheduled"
      ? `scheduled a change, which is applied now: ${describe(event)}`
      : `applied: ${describe(event)}`,
  "change_request.bypassed": (event) =>
    `applied without approvals: ${describe(event)}${quote(event.bypass_reason)}`,
  "change_request.stale": (event) =>
    `found a change request stale, because something changed since it was made: ${describe(event)}`,
};

/** Returns the title with the changes: one in parentheses, several in a list. */
function describe({ change_request: { title, summary } }: ToldRequest): string {
  if (summary === title) return title;
  const lines = summary.split("\n");
  return lines.length === 1
    ? `${title} (${summary})`
    : [title, ...lines.map((line) => `• ${line}`)].join("\n");
}

const quote = (reason = ""): string => (reason === "" ? "" : `\nReason: ${reason}`);

export function protectionText({
  environment: { name },
  protected: after,
  protected_before: before,
  bypass_reason: reason,
  triggered_by: { email },
}: Pick<
  ProtectionEvent,
  "environment" | "protected" | "protected_before" | "bypass_reason" | "triggered_by"
>): string {
  const change =
    before === null
      ? `protected ${name}: ${describeProtection(after)}`
      : after === null
        ? `ended the protection of ${name}: ${describeProtection(before)} before`
        : `changed the protection of ${name}: ${describeProtection(before)} → ${describeProtection(after)}`;
  return `${email} ${change}${quote(reason)}`;
}
