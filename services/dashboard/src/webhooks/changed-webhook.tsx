import { type ReactNode, useState } from "react";
import { isEditConflict } from "../api/problem.ts";
import type { Webhook } from "../api/schema.d.ts";
import { describeChange } from "../changes/describe-change.ts";
import { Warning } from "../ui/panels.tsx";
import { Time } from "../ui/time.tsx";
import { differencesOf } from "./webhook-edits.ts";
import { useChangesSince } from "./webhook-queries.ts";

type Seen = {
  seen: Webhook;
  /** Returns the version to send. From now on it is the one that the person has seen. */
  acknowledge: () => Webhook;
  /** The version that the person had seen before the conflict. */
  outdated: Webhook | undefined;
  notice: ReactNode;
  /** The error, unless `notice` shows it. */
  error: unknown;
};

/**
 * Keeps the version of the webhook that a dialog showed when it opened, because the page behind it can change at any time.
 * After a conflict, the dialog shows the current version, and the next attempt sends that one.
 */
export function useSeen(webhook: Webhook, error: unknown): Seen {
  const [last, setLast] = useState(webhook);
  const isConflict = isEditConflict(error);
  const seen = isConflict ? webhook : last;
  const acknowledge = () => {
    setLast(seen);
    return seen;
  };
  if (!isConflict) return { seen, acknowledge, outdated: undefined, notice: null, error };
  const notice = (
    <ChangedWebhook seen={last} current={webhook}>
      Do it again if you still want to.
    </ChangedWebhook>
  );
  return { seen, acknowledge, outdated: last, notice, error: null };
}

type ChangedWebhookProps = {
  seen: Webhook;
  current: Webhook;
  action?: ReactNode;
  /** Advice on the next step. */
  children: ReactNode;
};

/** Warns that a webhook has changed, and lists the changes, their authors and the current values. */
export function ChangedWebhook({ seen, current, action, children }: ChangedWebhookProps) {
  const changes = useChangesSince(seen);
  const differences = differencesOf(seen, current);
  return (
    <Warning action={action}>
      <p>Someone changed this webhook first, so this attempt saved nothing.</p>
      <ul>
        {changes.map((change) => (
          <li key={change.id}>
            {change.actor.email} {describeChange(change)}, <Time at={change.changed_at} />
          </li>
        ))}
        {differences.map((difference) => (
          <li key={difference}>Now {difference}</li>
        ))}
      </ul>
      <p>{children}</p>
    </Warning>
  );
}
