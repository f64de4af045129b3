import { Link, type LinkProps } from "@tanstack/react-router";
import {
  Boxes,
  CalendarClock,
  ClipboardCheck,
  Flag,
  KeyRound,
  type LucideIcon,
  User,
  Users,
  Webhook,
} from "lucide-react";
import type { AuditedChange } from "../api/schema.d.ts";
import { changeDifferences } from "../changes/change-difference.ts";
import { type Sentence, sentenceOf, sentenceText } from "../changes/describe-change.ts";
import { signedInBy } from "../changes/signed-in-by.ts";
import { Differences } from "../state/differences.tsx";
import { localTime, utcTime } from "../ui/dates.ts";
import { Disclosure } from "../ui/disclosure.tsx";
import { ClockTime } from "../ui/time.tsx";
import { CauseLink } from "./cause-link.tsx";
import styles from "./history.module.css";

/** What entries are shown with: existing flags and webhooks, because entries of deleted ones have no links, and names. */
export type Existing = {
  readonly environments: ReadonlyMap<string, string>;
  readonly flags: ReadonlySet<string>;
  readonly webhooks: ReadonlySet<string>;
  /** Names of keys by their ids. */
  readonly keyNames: ReadonlyMap<string, string>;
  /** The change requests that were applied without their approvals. */
  readonly bypassed: ReadonlySet<string>;
};

/** An entry of the audit log: the person, the change, and its difference. */
export function ChangeEntry({ change, existing }: { change: AuditedChange; existing: Existing }) {
  const environment = existing.environments.get(change.environment_id ?? "");
  const sentence = sentenceOf(change, environment);
  const how = signedInBy(change, existing.keyNames);
  const Icon = iconOf(change);
  const isBypass = change.action === "change_request_bypassed";
  return (
    <li className={styles.entry}>
      <span className={styles.clock}>
        <ClockTime at={change.changed_at} />
      </span>
      <Icon size={16} aria-hidden className={styles.icon} />
      <p className={`${styles.sentence} ${isBypass ? styles.bypass : ""}`}>
        <strong>{change.actor.email}</strong> {sentence.verb}{" "}
        <Subject
          sentence={sentence}
          link={linkOf(change, existing)}
          isCode={change.flag_id !== null || change.audience_key !== undefined}
        />
        {sentence.rest !== "" && ` ${sentence.rest}`}
        {how !== "" && (
          <span className={styles.how}>
            ,{" "}
            {change.cause_id === undefined || isOfRequest(change) ? (
              how
            ) : (
              <CauseLink causeId={change.cause_id} bypassed={existing.bypassed} />
            )}
          </span>
        )}
      </p>
      <Disclosure label="Details" about={`of: ${sentenceText(sentence)}`} isInGrid>
        {() => <Details change={change} />}
      </Disclosure>
    </li>
  );
}

const isOfRequest = ({ action }: AuditedChange): boolean => action.startsWith("change_request_");

function iconOf({ action }: AuditedChange): LucideIcon {
  if (action.startsWith("change_request_")) return ClipboardCheck;
  if (action.startsWith("schedule_")) return CalendarClock;
  if (action.startsWith("webhook_")) return Webhook;
  if (action.startsWith("key_")) return KeyRound;
  if (action.startsWith("user_")) return User;
  if (action.startsWith("audience_")) return Users;
  return action.startsWith("environment_") || action.startsWith("project_") ? Boxes : Flag;
}

type Target = LinkProps | undefined;

/** Returns the page of what was changed, if it still exists. */
function linkOf(change: AuditedChange, existing: Existing): Target {
  const env = existing.environments.get(change.environment_id ?? "");
  const search = env === undefined ? {} : { env };
  if (typeof change.after?.change_request === "string")
    return {
      to: "/change-requests/$requestId",
      params: { requestId: change.after.change_request },
    };
  if (change.flag_id !== null && change.flag_key !== null)
    return existing.flags.has(change.flag_id)
      ? { to: "/flags/$flagKey", params: { flagKey: change.flag_key }, search }
      : undefined;
  if (change.webhook_id !== null)
    return existing.webhooks.has(change.webhook_id)
      ? { to: "/webhooks/$webhookId", params: { webhookId: change.webhook_id } }
      : undefined;
  return change.key_id === null ? undefined : { to: "/keys", search };
}

type SubjectProps = {
  sentence: Sentence;
  link: Target;
  /** True for the key of a flag or an audience, which is shown in the font of code. */
  isCode: boolean;
};

function Subject({ sentence: { subject }, link, isCode }: SubjectProps) {
  const text = isCode ? <code>{subject}</code> : subject;
  if (link === undefined) return <span className={styles.subject}>{text}</span>;
  return (
    <Link {...link} className={styles.subject ?? ""}>
      {text}
    </Link>
  );
}

function Details({ change }: { change: AuditedChange }) {
  const { actor, flag_id, flag_key, api_key_id, changed_at } = change;
  return (
    <div className={styles.details}>
      <Differences items={changeDifferences(change, localTime)} label="What changed" />
      <p className={styles.note}>
        {utcTime(new Date(changed_at))}
        {api_key_id !== null && (
          <>
            {" "}
            · with the API key <code>{api_key_id}</code>
          </>
        )}
      </p>
      <p className={styles.more}>
        {flag_id !== null && (
          <Link to="/history" search={{ flag: flag_id }}>
            All changes of {flag_key}
          </Link>
        )}
        <Link to="/history" search={{ person: actor.id }}>
          All changes by {actor.email}
        </Link>
      </p>
    </div>
  );
}
