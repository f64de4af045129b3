import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { ProgressBar } from "react-aria-components";
import type { Environment } from "../api/schema.d.ts";
import type { ListedFlag } from "../flags/flag-search.ts";
import { useProposing } from "../proposals/use-proposing.ts";
import { CautionBadge } from "../state/caution.tsx";
import { Differences } from "../state/differences.tsx";
import { ProtectedBadge } from "../state/protected-badge.tsx";
import { Badge, type Tone } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogActions } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Checkbox } from "../ui/fields.tsx";
import { Warning } from "../ui/panels.tsx";
import styles from "./copy-dialog.module.css";
import {
  type CopiedFlag,
  type CopiedUsers,
  type CopyOutcome,
  copyProposal,
  hasSplit,
  outcomeTexts,
  type PlannedCopy,
  planCopy,
  summaryOfCopy,
} from "./plan-copy.ts";
import { type Pair, useCopiedFlags, useCopy } from "./use-copy.ts";

type CopyProps = {
  flags: readonly ListedFlag[];
  pair: Pair;
  /** Only shows the difference, for a key that may not change the target or for one flag of the list. */
  isReadOnly?: boolean;
  onClose: (wasCopied: boolean) => void;
};

/** Shows what copying would change, then copies with progress. It is open while it is rendered. */
export function CopyDialog(props: CopyProps) {
  const { flags, pair } = props;
  const { query, done } = useCopiedFlags(flags, pair);
  const close = () => props.onClose(false);
  if (query.data !== undefined) return <Preview {...props} read={query.data} />;
  return (
    <Dialog title={titleOf(props)} onClose={close} wide>
      {query.error ? (
        <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />
      ) : (
        <Progress label="Reading both environments" value={done} of={flags.length} />
      )}
      <DialogActions>
        <Button onPress={close}>Cancel</Button>
      </DialogActions>
    </Dialog>
  );
}

const countText = (count: number) => (count === 1 ? "1 flag" : `${count} flags`);

function titleOf({ flags, pair, isReadOnly }: CopyProps): string {
  if (isReadOnly) return `${flags[0]?.key}: ${pair.to.name} compared with ${pair.from.name}`;
  return `Copy ${countText(flags.length)} from ${pair.from.name} to ${pair.to.name}`;
}

function Preview(props: CopyProps & { read: readonly CopiedFlag[] }) {
  const { pair, read, isReadOnly = false, onClose } = props;
  const [users, setUsers] = useState<CopiedUsers>(isReadOnly ? "same" : "least-moved");
  const plans = useMemo(() => read.map((flag) => planCopy(flag, users)), [read, users]);
  const toCopy = plans.filter(({ changes }) => changes.length > 0);
  const { start, stop, isRunning, outcomes } = useCopy(toCopy, pair.to);
  const { isProposed, change } = useProposing(pair.to);
  const ended = outcomes !== undefined && !isRunning;
  const close = () => {
    if (!isRunning) onClose(outcomes !== undefined);
  };
  return (
    <Dialog title={titleOf(props)} onClose={close} wide>
      {!isReadOnly && <TargetNote to={pair.to} isStarted={outcomes !== undefined} />}
      {!isReadOnly && outcomes === undefined && read.some(({ source }) => hasSplit(source)) && (
        <Checkbox
          isSelected={users === "same"}
          onChange={(isSame) => setUsers(isSame ? "same" : "least-moved")}
        >
          Same users: whoever gets a variation of a split in {pair.from.name} gets it in{" "}
          {pair.to.name} too. Otherwise, the fewest users get another one.
        </Checkbox>
      )}
      {outcomes !== undefined && (
        <Result outcomes={[...outcomes.values()]} isRunning={isRunning} pair={pair} />
      )}
      <ol className={styles.plans} aria-label="Changes">
        {plans.map((plan) => (
          <Plan
            key={plan.flag.id}
            plan={plan}
            pair={pair}
            outcome={outcomes?.get(plan.flag.id)}
            isComparison={isReadOnly}
          />
        ))}
      </ol>
      <DialogActions>
        {isRunning && <Button onPress={stop}>Stop</Button>}
        {!isRunning && <Button onPress={close}>{ended || isReadOnly ? "Close" : "Cancel"}</Button>}
        {!isReadOnly && !ended && (
          <Button
            variant="primary"
            onPress={() =>
              change({
                make: () => void start(),
                proposal: () => {
                  onClose(true);
                  return copyProposal(toCopy, pair);
                },
              })
            }
            isPending={isRunning}
            isDisabled={toCopy.length === 0}
          >
            {isProposed
              ? "Request the change"
              : `Copy ${countText(toCopy.length)} to ${pair.to.name}`}
          </Button>
        )}
      </DialogActions>
    </Dialog>
  );
}

/** The marks of the target, and when the changes take effect there. */
function TargetNote({ to, isStarted }: { to: Environment; isStarted: boolean }) {
  return (
    <>
      {to.protected !== null && <ProtectedBadge />}
      {to.caution && <CautionBadge />}
      {!isStarted && (
        <p>
          {to.protected === null ? (
            <>
              These changes take effect in <bdi>{to.name}</bdi> immediately.
            </>
          ) : (
            <>
              These changes of <bdi>{to.name}</bdi> become one change request, which other people
              approve.
            </>
          )}{" "}
          Names, descriptions and schedules are not copied.
        </p>
      )}
    </>
  );
}

type ResultProps = { outcomes: readonly CopyOutcome[]; isRunning: boolean; pair: Pair };

function Result({ outcomes, isRunning, pair }: ResultProps) {
  if (isRunning) {
    const done = outcomes.filter(({ kind }) => kind !== "waiting" && kind !== "running").length;
    return <Progress label={`Copying to ${pair.to.name}`} value={done} of={outcomes.length} />;
  }
  const hasConflict = outcomes.some(({ kind }) => kind === "conflict");
  return (
    <div className={styles.result} role="status">
      <p>
        <b>{summaryOfCopy(outcomes)}.</b> To undo a copy, open the history of the flag in{" "}
        <bdi>{pair.to.name}</bdi> and roll it back.
      </p>
      {hasConflict && (
        <Warning>
          Someone else changed a flag in <bdi>{pair.to.name}</bdi> after this preview, so it was
          left as it is. Close this dialog and compare again.
        </Warning>
      )}
    </div>
  );
}

const tones: Readonly<Record<CopyOutcome["kind"], Tone>> = {
  waiting: "neutral",
  running: "accent",
  copied: "on",
  conflict: "warning",
  stopped: "neutral",
  failed: "danger",
};

type PlanProps = {
  plan: PlannedCopy;
  pair: Pair;
  outcome: CopyOutcome | undefined;
  /** Names the environments instead of the flag, which is in the title. */
  isComparison: boolean;
};

function Plan({ plan: { flag, changes, warning }, pair, outcome, isComparison }: PlanProps) {
  return (
    <li className={styles.plan}>
      {!isComparison && <PlanHead flagKey={flag.key} pair={pair} outcome={outcome} />}
      {outcome?.kind === "failed" && <p className={styles.reason}>{outcome.reason}</p>}
      {!isComparison && outcome === undefined && warning !== undefined && (
        <Warning>{warning}</Warning>
      )}
      {changes.length === 0 ? (
        <p className={styles.note}>This copy changes nothing.</p>
      ) : (
        <>
          {isComparison && (
            <p className={styles.note}>
              From the state in <bdi>{pair.to.name}</bdi> to the state in{" "}
              <bdi>{pair.from.name}</bdi>:
            </p>
          )}
          <Differences items={changes} label={`Differences of ${flag.key}`} />
        </>
      )}
    </li>
  );
}

type PlanHeadProps = { flagKey: string; pair: Pair; outcome: CopyOutcome | undefined };

function PlanHead({ flagKey, pair, outcome }: PlanHeadProps) {
  return (
    <div className={styles.planHead}>
      <code className={styles.key}>{flagKey}</code>
      {outcome !== undefined && (
        <Badge tone={tones[outcome.kind]}>{outcomeTexts[outcome.kind]}</Badge>
      )}
      {outcome?.kind === "copied" && (
        <Link
          to="/flags/$flagKey/history"
          params={{ flagKey }}
          search={{ env: pair.to.name }}
          aria-label={`History of ${flagKey}`}
        >
          History
        </Link>
      )}
    </div>
  );
}

/** Progress of a number of requests. */
export function Progress({ label, value, of }: { label: string; value: number; of: number }) {
  return (
    <ProgressBar value={value} maxValue={of} aria-label={label} className={styles.progress ?? ""}>
      {({ percentage }) => (
        <>
          <p>
            {label}: {value} of {of}
          </p>
          <div className={styles.track}>
            <div className={styles.fill} style={{ width: `${percentage}%` }} />
          </div>
        </>
      )}
    </ProgressBar>
  );
}
