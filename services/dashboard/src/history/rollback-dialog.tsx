import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { isEditConflict } from "../api/problem.ts";
import type { HistoryEntry } from "../api/schema.d.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { putIntoList, readFlag } from "../flags/flag-queries.ts";
import { ifVersion, statePathOf, stateRoute } from "../flags/state-route.ts";
import { useKeySession } from "../session/session.tsx";
import { Differences } from "../state/differences.tsx";
import { stateDifferences, stateTexts } from "../state/state.ts";
import { Button } from "../ui/button.tsx";
import { localTime } from "../ui/dates.ts";
import { Dialog, DialogActions, KeepOpen } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Warning } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./history.module.css";
import { type Preview, readPreview } from "./history-queries.ts";

type DialogProps = { onClose: () => void };

/** Shows what a rollback does before it is made. */
export function RollbackDialog({ onClose }: DialogProps) {
  const { flag, environment } = useFlagInPage();
  return (
    <Dialog title={`Roll back ${flag.key} in ${environment.name}`} onClose={onClose} wide>
      <RollbackPreview onClose={onClose} />
    </Dialog>
  );
}

/**
 * Reads the preview when the dialog opens, and again only on request: what a person is about to confirm must not change
 * under the pointer. Its query key is therefore none that live changes invalidate.
 */
function RollbackPreview({ onClose }: DialogProps) {
  const place = useFlagInPage();
  const { api } = useKeySession();
  const [reviewed, setReviewed] = useState<HistoryEntry>();
  const query = useQuery({
    queryKey: ["rollback", place.flag.id, place.environment.id],
    queryFn: () => readPreview(api, place),
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
          reviewed={reviewed}
          isReading={query.isFetching}
          onReview={review}
          onClose={onClose}
        />
      )}
    </QueryView>
  );
}

type LoadedProps = {
  preview: Preview;
  /** The state in an earlier preview, if another person has changed it since. */
  reviewed: HistoryEntry | undefined;
  isReading: boolean;
  onReview: (outdated: HistoryEntry) => void;
  onClose: () => void;
};

function LoadedPreview({ preview, reviewed, isReading, onReview, onClose }: LoadedProps) {
  const [current, earlier] = preview.entries;
  const { mutate, isPending, error } = useRollback(preview, onClose);
  if (current === undefined || earlier === undefined)
    return (
      <>
        <p>There is no earlier state to roll back to: this is the first state of the flag.</p>
        <DialogActions>
          <Button onPress={onClose}>Close</Button>
        </DialogActions>
      </>
    );
  const isConflict = isEditConflict(error);
  return (
    <>
      <KeepOpen isPending={isPending} />
      {reviewed !== undefined && (
        <Warning>
          <p>Someone else changed the flag first, so nothing was rolled back. Their change:</p>
          <Differences items={stateDifferences(reviewed, current)} label="Change by someone else" />
        </Warning>
      )}
      <Outcome current={current} earlier={earlier} />
      {isConflict && (
        <Warning>
          Nothing was rolled back: someone else changed the flag after you opened this preview. Look
          at the new state, then decide again.
        </Warning>
      )}
      {error !== null && !isConflict && <ErrorPanel error={error} />}
      <DialogActions>
        <Button onPress={onClose} isDisabled={isPending}>
          Cancel
        </Button>
        {isConflict ? (
          <Button variant="primary" onPress={() => onReview(current)} isPending={isReading}>
            Show the new state
          </Button>
        ) : (
          <Button variant="primary" onPress={() => mutate()} isPending={isPending || isReading}>
            Roll back
          </Button>
        )}
      </DialogActions>
    </>
  );
}

function Outcome({ current, earlier }: { current: HistoryEntry; earlier: HistoryEntry }) {
  return (
    <>
      <section className={styles.effect}>
        <h3>What changes</h3>
        <Differences items={stateDifferences(current, earlier)} label="What changes" />
      </section>
      <div className={styles.sides}>
        <Side title="Now" entry={current} />
        <Side title="After the rollback" entry={earlier} />
      </div>
      <p className={styles.note}>
        The rollback is a new entry of the history, so another rollback undoes it. Schedules stay.
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
 * Rolls back the state of the preview, and no other. The idempotency key names that state, so that a repetition after a
 * lost response returns the first result instead of a conflict with oneself.
 */
function useRollback({ version }: Preview, onDone: () => void) {
  const place = useFlagInPage();
  const { flag, environment } = place;
  const { api } = useKeySession();
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => {
      const header = {
        ...ifVersion(version),
        "Idempotency-Key": `rollback-${flag.id}-${environment.id}-${version}`,
      };
      const params = { path: statePathOf(place), header };
      return unwrap(api.POST(`${stateRoute}/rollback`, { params }));
    },
    onSuccess: async ({ rolled_back_to }) => {
      const time = localTime(new Date(rolled_back_to));
      notify({ text: `${flag.key} is back to its state of ${time} in ${environment.name}.` });
      onDone();
      putIntoList(client, flag.key, await readFlag(api, flag.key));
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["flag", flag.key] }),
  });
}
