import type { SystemStatus } from "../api/schema.d.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { count as wholeNumber } from "../ui/numbers.ts";
import { type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { Section } from "./section.tsx";
import { type DeadLetter, effectOf } from "./status-facts.ts";
import styles from "./status-page.module.css";

type Row = DeadLetter & { id: string };

const columns: readonly Column<Row>[] = [
  {
    id: "subject",
    header: "Message",
    cell: ({ subject, reason }) => (
      <div className={styles.reason}>
        <code>{subject}</code>
        <div className={styles.note}>{reason ?? "No reason is recorded"}</div>
      </div>
    ),
  },
  { id: "effect", header: "Effect", cell: ({ subject }) => effectOf(subject).effect },
  {
    id: "action",
    header: "What to do after the cause is fixed",
    cell: ({ subject }) => effectOf(subject).action,
  },
  { id: "at", header: "When", cell: ({ at }) => <Time at={at} /> },
];

/** The newest messages that could not be processed. */
export function DeadLetters({ letters }: { letters: SystemStatus["dead_letters"] }) {
  return (
    <Section
      title="Dead letters"
      lead="Messages that do not parse, or failed five times. Each stays for 30 days. The cause is a bug or a mix of incompatible releases."
    >
      {letters === null && (
        <p className={styles.note}>Unknown, because NATS does not respond in time.</p>
      )}
      {letters?.count === 0 && <p className={styles.note}>There are none.</p>}
      {letters !== null && letters.count > 0 && <LetterTable {...letters} />}
    </Section>
  );
}

function LetterTable({ count, newest }: NonNullable<SystemStatus["dead_letters"]>) {
  const rows = newest.map((letter, index) => ({ ...letter, id: String(index) }));
  return (
    <>
      <Table label="Newest dead letters" columns={columns} rows={rows} />
      {count > rows.length && (
        <p className={styles.note}>
          The newest {rows.length} of {wholeNumber(count)}.
        </p>
      )}
      <CodeBlock title="Read the messages" code="nats stream view SET_ASIDE" />
      <p className={styles.note}>
        “Dead-lettered messages” in <code>docs/runbooks.md</code> has the commands that publish a
        message again.
      </p>
    </>
  );
}
