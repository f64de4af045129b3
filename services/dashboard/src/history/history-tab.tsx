import { Link } from "@tanstack/react-router";
import { History as HistoryIcon, RotateCcw } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { HistoryEntry } from "../api/schema.d.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { usePermission } from "../session/use-permission.ts";
import { Differences } from "../state/differences.tsx";
import { stateDifferences, stateIn, stateTexts } from "../state/state.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { localTime } from "../ui/dates.ts";
import { Disclosure } from "../ui/disclosure.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Time } from "../ui/time.tsx";
import { CauseLink } from "./cause-link.tsx";
import styles from "./history.module.css";
import {
  type Authorship,
  type History,
  useAuthorship,
  useBypassed,
  useHistory,
  usePersonName,
} from "./history-queries.ts";
import { RestoreDialog } from "./restore-dialog.tsx";

/** The states of the flag in the chosen environment, what differs between them, and the way back to each of them. */
export function HistoryTab() {
  const { flag, environment } = useFlagInPage();
  const query = useHistory({ flag, environment });
  return (
    <QueryView query={query} label={`Loading the history of ${flag.key}`}>
      {(history) => (
        <States key={environment.id} history={history}>
          {query.hasOlder && (
            <Button onPress={query.readOlder} isPending={query.isReadingOlder}>
              Load older states
            </Button>
          )}
        </States>
      )}
    </QueryView>
  );
}

/** An open dialog. Without a target, it rolls back the last change. */
type Open = { target: HistoryEntry | undefined };

/** `children` is at the end of the list. */
function States({ history, children }: { history: History; children: ReactNode }) {
  const { flag, environment } = useFlagInPage();
  const [open, setOpen] = useState<Open>();
  const { reason: missing } = usePermission("change_states", environment);
  const mayChange = missing === undefined;
  const { entries, isComplete } = history;
  const authorshipOf = useAuthorship(flag);
  const authorships = entries.map(authorshipOf);
  const bypassed = useBypassed(authorships.some(({ causeId }) => causeId !== undefined));
  const isFirst = entries.length < 2 && isComplete;
  const reason =
    missing ?? (isFirst ? "There is no earlier state to roll back to yet." : undefined);
  if (entries.length === 0) return <NoStates />;
  return (
    <>
      <div className={styles.tools}>
        <p className={styles.note}>
          States of <code>{flag.key}</code> in <bdi>{environment.name}</bdi>, the newest first.{" "}
          {reason ??
            "A rollback restores the state before the newest change. You can also restore any state of the list."}
        </p>
        <Button isDisabled={reason !== undefined} onPress={() => setOpen({ target: undefined })}>
          <RotateCcw size={14} aria-hidden /> Roll back…
        </Button>
      </div>
      <ol className={styles.states} aria-label={`States of ${flag.key} in ${environment.name}`}>
        {entries.map((entry, index) => (
          <StateEntry
            key={entry.id}
            entry={entry}
            authorship={authorships[index] ?? { signedInBy: "" }}
            bypassed={bypassed}
            previous={entries[index + 1]}
            isCurrent={index === 0}
            isFirst={isComplete && index === entries.length - 1}
            onRestore={mayChange ? () => setOpen({ target: entry }) : undefined}
          />
        ))}
      </ol>
      <div className={styles.older}>{children}</div>
      <p className={styles.note}>
        {isComplete && "This is the whole history that Halyard keeps. "}
        <Link to="/history" search={{ flag: flag.id }}>
          All changes of {flag.key}
        </Link>{" "}
        are in the history of the project, also those of its settings and in other environments.
        These are no states of this environment, so they cannot be restored here.
      </p>
      {open !== undefined && (
        <RestoreDialog target={open.target} onClose={() => setOpen(undefined)} />
      )}
    </>
  );
}

const howTexts: Record<HistoryEntry["change_type"], string> = {
  manual: "Manual",
  scheduled: "By schedule",
  rollback: "Rollback",
};

type StateEntryProps = {
  entry: HistoryEntry;
  authorship: Authorship;
  bypassed: ReadonlySet<string>;
  previous: HistoryEntry | undefined;
  isCurrent: boolean;
  isFirst: boolean;
  /** Undefined if the key may not change the state. */
  onRestore: (() => void) | undefined;
};

function StateEntry(props: StateEntryProps) {
  const { entry, authorship, bypassed, previous, isCurrent, isFirst, onRestore } = props;
  const { signedInBy, causeId } = authorship;
  const person = usePersonName(entry.changed_by);
  const when = localTime(new Date(entry.changed_at));
  return (
    <li className={styles.state}>
      <div className={styles.stateHead}>
        <strong>{person ?? "Someone"}</strong>
        {signedInBy !== "" && (
          <span className={styles.how}>
            {causeId === undefined ? signedInBy : <CauseLink {...{ causeId, bypassed }} />}
          </span>
        )}
        <Badge tone={entry.change_type === "manual" ? "neutral" : "accent"}>
          {howTexts[entry.change_type]}
        </Badge>
        {isCurrent && <Badge tone="on">Current state</Badge>}
        <span className={styles.when}>
          <Time at={entry.changed_at} />
        </span>
        {!isCurrent && onRestore !== undefined && (
          <Button size="small" onPress={onRestore} aria-label={`Restore this state of ${when}`}>
            Restore this
          </Button>
        )}
      </div>
      {previous === undefined ? (
        <p className={styles.note}>
          {isFirst
            ? "The first state of the flag."
            : "Load older states to see what this change made different."}
        </p>
      ) : (
        <Differences items={stateDifferences(previous, entry)} label={`Differences of ${when}`} />
      )}
      <ChangedAudiences entry={entry} />
      <Disclosure label="Full state" about={`of ${when}`}>
        {() => <FullState entry={entry} />}
      </Disclosure>
    </li>
  );
}

/** A state refers to audiences, so users can get something else than when it was saved. */
function ChangedAudiences({
  entry: { changed_audiences: audiences = [] },
}: {
  entry: HistoryEntry;
}) {
  return audiences.map(({ key, changed_at: at }) => (
    <p key={key} className={styles.note}>
      The audience <code>{key}</code>{" "}
      {at === null ? (
        "no longer exists."
      ) : (
        <>
          has changed since: <Time at={at} />.
        </>
      )}
    </p>
  ));
}

function FullState({ entry }: { entry: HistoryEntry }) {
  const state = stateIn(entry);
  return (
    <div className={styles.full}>
      <ul className={styles.facts}>
        {stateTexts(state).map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
      <CodeBlock title="As JSON" code={JSON.stringify(state, null, 2)} />
    </div>
  );
}

/** Retention keeps the last states, so this appears only while an environment is created. */
function NoStates() {
  const { flag, environment } = useFlagInPage();
  return (
    <EmptyState icon={HistoryIcon} title={`No history in ${environment.name} yet`}>
      The first state of {flag.key} appears here as soon as the environment is ready.
    </EmptyState>
  );
}
