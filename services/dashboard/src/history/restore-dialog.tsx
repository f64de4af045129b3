import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { isEditConflict } from "../api/problem.ts";
import type { HistoryEntry } from "../api/schema.d.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { putIntoList, readFlag } from "../flags/flag-queries.ts";
import { useStateWarning } from "../flags/use-change-warning.ts";
import { stateProposal } from "../proposals/state-proposal.ts";
import { useProposing } from "../proposals/use-proposing.ts";
import { useKeySession } from "../session/session.tsx";
import { CautionBadge } from "../state/caution.tsx";
import { Differences } from "../state/differences.tsx";
import { isSameState, stateDifferences, stateIn, stateTexts } from "../state/state.ts";
import { ruleProblemOf } from "../targeting/problems.ts";
import { Button } from "../ui/button.tsx";
import { localTime } from "../ui/dates.ts";
import { Dialog, DialogActions, KeepOpen } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Warning } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./history.module.css";
import { type Preview, readPreview } from "./history-queries.ts";
import { rollBack, saveState } from "./restore-state.ts";

type DialogProps = {
  /** The state to restore. Without one, the dialog rolls back the last change. */
  target: HistoryEntry | undefined;
  onClose: () => void;
};

/** Shows what a rollback or the restoration of an older state changes, before it is saved. */
export function RestoreDialog({ target, onClose }: DialogProps) {
  const { flag, environment } = useFlagInPage();
  const action = target === undefined ? "Roll back" : "Restore a state of";
  return (
    <Dialog title={`${action} ${flag.key} in ${environment.name}`} onClose={onClose} wide>
      {environment.caution && <CautionBadge />}
      <RestorePreview target={target} onClose={onClose} />
    </Dialog>
  );
}

/**
 * Reads the preview when the dialog opens, and again only on request: what a person is about to confirm must not change
 * under the pointer. Its query key is therefore none that live changes invalidate.
 */
function RestorePreview({ target, onClose }: DialogProps) {
  const place = useFlagInPage();
  const { api } = useKeySession();
  const warningOf = useStateWarning(place.environment);
  const [reviewed, setReviewed] = useState<HistoryEntry>();
  const query = useQuery({
    queryKey: ["restore", place.flag.id, place.environment.id, target?.id],
    queryFn: async (): Promise<WarnedPreview> => {
      const preview = await readPreview(api, place, target);
      const { current, wanted } = preview;
      if (current === undefined || wanted === undefined) return preview;
      const warning = await warningOf(place.flag, stateIn(current), stateIn(wanted));
      return { ...preview, warning };
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnMount: "always",
    refetchOnReconnect: false,
  });
  const review = (outdated: HistoryEntry) => {
    setReviewed(outdated);
    void query.refetch();
  };
  return (
    <QueryView query={query} label="Loading the earlier state">
      {(preview) => (
        <LoadedPreview
          key={preview.version}
          preview={preview}
          target={target}
          reviewed={reviewed}
          isReading={query.isFetching}
          onReview={review}
          onClose={onClose}
        />
      )}
    </QueryView>
  );
}

/** A preview, with a warning about SDKs that do not support the state, and flags that turn off too. */
type WarnedPreview = Preview & { warning?: string | undefined };

type LoadedProps = DialogProps & {
  preview: WarnedPreview;
  /** The state in an earlier preview, if another person has changed it since. */
  reviewed: HistoryEntry | undefined;
  isReading: boolean;
  onReview: (outdated: HistoryEntry) => void;
};

function LoadedPreview(props: LoadedProps) {
  const { preview, target, reviewed, isReading, onReview, onClose } = props;
  const { current, wanted } = preview;
  const { restore, isProposed, isPending, error } = useRestoreOrProposal(props);
  const obstacle = obstacleTo(preview, target);
  if (current === undefined || wanted === undefined || obstacle !== undefined)
    return (
      <>
        <p>{obstacle}</p>
        <DialogActions>
          <Button onPress={onClose}>Close</Button>
        </DialogActions>
      </>
    );
  const isConflict = isEditConflict(error);
  const done = target === undefined ? "rolled back" : "restored";
  return (
    <>
      <KeepOpen isPending={isPending} />
      {reviewed !== undefined && (
        <Warning>
          <p>Someone else changed the flag first, so nothing was {done}. Their change:</p>
          <Differences items={stateDifferences(reviewed, current)} label="Change by someone else" />
        </Warning>
      )}
      <Outcome current={current} wanted={wanted} isRollback={target === undefined} />
      {preview.warning !== undefined && <Warning>{preview.warning}</Warning>}
      {isConflict && (
        <Warning>
          Nothing was {done}: someone else changed the flag after you opened this preview. Look at
          the new state, then decide again.
        </Warning>
      )}
      {error !== null && !isConflict && <RestoreError error={error} />}
      <DialogActions>
        <Button onPress={onClose} isDisabled={isPending}>
          Cancel
        </Button>
        {isConflict ? (
          <Button variant="primary" onPress={() => onReview(current)} isPending={isReading}>
            Show the new state
          </Button>
        ) : (
          <Button variant="primary" onPress={restore} isPending={isPending || isReading}>
            {isProposed ? "Request the change" : target === undefined ? "Roll back" : "Restore"}
          </Button>
        )}
      </DialogActions>
    </>
  );
}

/** Says why a state cannot be restored. Returns undefined if it can. */
function obstacleTo(
  { current, wanted }: Preview,
  target: HistoryEntry | undefined,
): string | undefined {
  if (current === undefined || wanted === undefined)
    return "There is no earlier state to roll back to: this is the first state of the flag.";
  return target !== undefined && isSameState(current, target)
    ? "There is nothing to restore: the flag has this state now."
    : undefined;
}

/** Explains an error. The API can reject the rules of an old state, because an earlier release accepted them. */
function RestoreError({ error }: { error: Error }) {
  const problem = ruleProblemOf(error);
  if (problem === undefined) return <ErrorPanel error={error} />;
  return (
    <Warning>
      This state cannot be restored, because the API no longer accepts one of its rules. {problem}.
      Open its full state in the history, and enter what you need on the tab Targeting.
    </Warning>
  );
}

type OutcomeProps = { current: HistoryEntry; wanted: HistoryEntry; isRollback: boolean };

function Outcome({ current, wanted, isRollback }: OutcomeProps) {
  return (
    <>
      <section className={styles.effect}>
        <h3>What changes</h3>
        <Differences items={stateDifferences(current, wanted)} label="What changes" />
      </section>
      <div className={styles.sides}>
        <Side title="Now" entry={current} />
        <Side title={isRollback ? "After the rollback" : "After it is restored"} entry={wanted} />
      </div>
      <p className={styles.note}>
        {isRollback
          ? "The rollback is a new entry of the history, so another rollback undoes it. Schedules stay."
          : "This is a new entry of the history, so a rollback undoes it. A state consists of the switch, the percentages, the rules and what is served. Users of splits get their earlier variation back. The name, the description, the type and schedules stay."}
      </p>
    </>
  );
}

function Side({ title, entry }: { title: string; entry: HistoryEntry }) {
  return (
    <section className={styles.side}>
      <h3>{title}</h3>
      <p className={styles.note}>State of {localTime(new Date(entry.changed_at))}</p>
      <ul className={styles.facts}>
        {stateTexts(entry).map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </section>
  );
}

/**
 * Restores the state of the preview, or proposes that in a protected environment. The exception for rollbacks has more
 * conditions, which the API checks: its error links the draft of a change request.
 */
function useRestoreOrProposal({ preview, target, onClose }: LoadedProps) {
  const place = useFlagInPage();
  const { mutate, isPending, error } = useRestore(preview, target, onClose);
  const { proposes, change } = useProposing(place.environment);
  const { current, wanted, version, warning } = preview;
  const turnsOn = wanted?.enabled === true && current?.enabled === false;
  const exception = target === undefined && !turnsOn ? "rollback" : undefined;
  return {
    ...{ isPending, error, isProposed: proposes(exception) },
    restore: () =>
      change({
        exception,
        make: mutate,
        proposal: () => {
          if (current === undefined || wanted === undefined)
            throw new Error("there is no state to restore");
          onClose();
          const states = { before: stateIn(current), after: stateIn(wanted) };
          return { ...stateProposal(place, { version }, states), warning };
        },
      }),
  };
}

/** Changes the state of the preview, and no other, to the previous or to an older state. */
function useRestore(
  { version, wanted }: Preview,
  target: HistoryEntry | undefined,
  onDone: () => void,
) {
  const place = useFlagInPage();
  const { flag, environment } = place;
  const { api } = useKeySession();
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      if (target === undefined) await rollBack(api, place, version);
      else await saveState(api, place, { version, state: stateIn(target) });
    },
    onSuccess: async () => {
      const time = wanted && localTime(new Date(wanted.changed_at));
      notify({ text: `${flag.key} is back to its state of ${time} in ${environment.name}.` });
      onDone();
      putIntoList(client, flag.key, await readFlag(api, flag.key));
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["flag", flag.key] }),
  });
}
