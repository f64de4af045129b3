import { Link } from "@tanstack/react-router";
import type { ProposedChange } from "../api/schema.d.ts";
import { useAudience } from "../references/audience-queries.ts";
import { useKeySession } from "../session/session.tsx";
import { Differences } from "../state/differences.tsx";
import { Disclosure } from "../ui/disclosure.tsx";
import { Card } from "../ui/panels.tsx";
import styles from "./change-requests.module.css";
import { audienceOf, type ProposedWords, proposedWords, subjectText } from "./proposed-words.ts";

/** The changes of a request, in words and as values. */
export function ProposedChanges({ changes }: { changes: readonly ProposedChange[] }) {
  return (
    <Card title={changes.length === 1 ? "Change" : `${changes.length} changes`}>
      {changes.map((change) => (
        <Proposed key={`${change.kind} ${subjectText(change)}`} change={change} />
      ))}
    </Card>
  );
}

function Proposed({ change }: { change: ProposedChange }) {
  const words = proposedWords(change);
  const subject = subjectText(change);
  const audience = audienceOf(change);
  return (
    <section className={styles.change} aria-label={subject}>
      <h3>
        <Subject change={change} text={subject} />
      </h3>
      <Differences items={words.differences} label={`Changes of ${subject}`} />
      {words.since !== undefined && <Since words={words} subject={subject} />}
      {words.notes.map((note) => (
        <p key={note} className={styles.note}>
          {note}
        </p>
      ))}
      {audience !== undefined && <Uses audienceKey={audience} />}
      {words.sides !== undefined && <Sides sides={words.sides} subject={subject} />}
    </section>
  );
}

function Subject({ change, text }: { change: ProposedChange; text: string }) {
  const audience = audienceOf(change);
  if (audience !== undefined)
    return (
      <Link to="/audiences/$audienceKey" params={{ audienceKey: audience }}>
        {text}
      </Link>
    );
  if (!("flag_key" in change)) return text;
  const search = "environment_name" in change ? { env: change.environment_name } : {};
  return (
    <Link to="/flags/$flagKey" params={{ flagKey: change.flag_key }} search={search}>
      {text}
    </Link>
  );
}

/** Shows what something else has changed since the request was made. Another version can have the same values. */
function Since({ words: { since = [] }, subject }: { words: ProposedWords; subject: string }) {
  if (since.length === 0)
    return <p className={styles.note}>Changed since. These values are the same.</p>;
  return (
    <div className={styles.alarm}>
      <p>Something else has changed this since:</p>
      <Differences items={since} label={`Changes of ${subject} since`} />
    </div>
  );
}

type SidesProps = { sides: NonNullable<ProposedWords["sides"]>; subject: string };

function Sides({ sides: { before, after, now }, subject }: SidesProps) {
  return (
    <Disclosure label="All values" about={`of ${subject}`}>
      {() => (
        <div className={styles.sides}>
          <Side title="Before" facts={before} />
          {now !== undefined && <Side title="Now" facts={now} />}
          <Side title="After" facts={after} />
        </div>
      )}
    </Disclosure>
  );
}

function Side({ title, facts }: { title: string; facts: readonly string[] }) {
  return (
    <section className={styles.side} aria-label={title}>
      <h4>{title}</h4>
      <ul>
        {facts.map((fact) => (
          <li key={fact}>{fact}</li>
        ))}
      </ul>
    </section>
  );
}

/** The flags that use an audience, which a change of the audience reaches. */
function Uses({ audienceKey }: { audienceKey: string }) {
  const { environments } = useKeySession().me;
  const { data } = useAudience(audienceKey);
  if (data === undefined) return null;
  const nameOf = new Map(environments.map(({ id, name }) => [id, name]));
  const texts = data.used_by.map(
    ({ flag_key, environment_id }) =>
      `${flag_key} in ${nameOf.get(environment_id) ?? "another environment"}`,
  );
  return <p className={styles.note}>Used by {texts.join(", ") || "no flag"}.</p>;
}
