import { useSearch } from "@tanstack/react-router";
import { ArrowLeftRight, CircleCheck, Flag, GitCompareArrows, SearchX } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { useFlags } from "../flags/flag-queries.ts";
import type { ListedFlag } from "../flags/flag-search.ts";
import { useKeySession } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { Button, ButtonLink, IconButton } from "../ui/button.tsx";
import { useChangeSearch } from "../ui/change-search.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { curl } from "../ui/curl.ts";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Checkbox, SearchField, Select } from "../ui/fields.tsx";
import { Filters, Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { useSearchText } from "../ui/use-search-text.ts";
import {
  type Comparison,
  compareFlag,
  differs,
  filterComparisons,
  missingRules,
} from "./compare-flags.ts";
import { CompareList } from "./compare-list.tsx";
import styles from "./compare-page.module.css";
import { type CompareSearch, choosePair } from "./compare-search.ts";
import { CopyDialog, Progress } from "./copy-dialog.tsx";
import type { Pair } from "./use-copy.ts";
import { type RulesReading, useKnownRules, useReadRules } from "./use-rules.ts";

/** Flags that one copy can contain, so that a person can read its preview. */
const maxChosen = 100;

/** All flags in two environments side by side, and copies from one to the other. */
export function ComparePage() {
  const { me } = useKeySession();
  const search = useSearch({ from: "/compare" });
  const flags = useFlags();
  const pair = choosePair(me.environments, search);
  return (
    <Page
      title="Compare environments"
      lead="See which flags differ, and copy what you tested to where it is needed."
    >
      {pair === undefined ? (
        <OneEnvironment />
      ) : (
        <>
          <PairFilters pair={pair} search={search} />
          <QueryView query={flags} label="Loading the flags">
            {(all) =>
              all.length === 0 ? (
                <NoFlags />
              ) : (
                <Comparisons
                  key={`${pair.from.id} ${pair.to.id}`}
                  flags={all}
                  pair={pair}
                  search={search}
                />
              )
            }
          </QueryView>
        </>
      )}
    </Page>
  );
}

function PairFilters({ pair: { from, to }, search }: { pair: Pair; search: CompareSearch }) {
  const { me } = useKeySession();
  const change = useChangeSearch<CompareSearch>();
  const write = useCallback((q: string) => change({ q: q === "" ? undefined : q }), [change]);
  const [text, setText] = useSearchText(search.q ?? "", write);
  const optionsWithout = (other: string) =>
    me.environments
      .filter(({ name }) => name !== other)
      .map(({ name }) => ({ value: name, label: name }));
  return (
    <>
      <div className={styles.pair}>
        <Select
          label="From"
          value={from.name}
          onChange={(name) => change({ from: name, to: to.name })}
          options={optionsWithout(to.name)}
        />
        <IconButton
          icon={ArrowLeftRight}
          label="Swap the environments"
          onPress={() => change({ from: to.name, to: from.name })}
        />
        <Select
          label="To"
          value={to.name}
          onChange={(name) => change({ from: from.name, to: name })}
          options={optionsWithout(from.name)}
        />
      </div>
      <Filters>
        <SearchField
          label="Search flags by key, name or description"
          placeholder="Search by key, name or description"
          value={text}
          onChange={setText}
        />
        <Checkbox
          isSelected={search.all !== true}
          onChange={(isOnly) => change({ all: isOnly ? undefined : true })}
        >
          Only differences
        </Checkbox>
      </Filters>
    </>
  );
}

type ComparisonsProps = { flags: readonly ListedFlag[]; pair: Pair; search: CompareSearch };

function Comparisons({ flags, pair, search }: ComparisonsProps) {
  const { rulesOf, learn } = useKnownRules();
  const comparisons = useMemo(
    () => flags.flatMap((flag) => compareFlag(flag, pair.from.id, pair.to.id, rulesOf) ?? []),
    [flags, pair, rulesOf],
  );
  const wanted = useMemo(() => missingRules(comparisons, rulesOf), [comparisons, rulesOf]);
  const reading = useReadRules(wanted, learn);
  const shown = filterComparisons(comparisons, search);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<{ flags: readonly ListedFlag[]; isReadOnly: boolean }>();
  const { reason, isOffered } = usePermission("change_states", pair.to);
  // A chosen flag that became equal meanwhile is not copied.
  const copies = comparisons.filter((found) => chosen.has(found.flag.id) && differs(found));
  const choose = (flag: ListedFlag, isChosen: boolean) =>
    setChosen((before) => {
      const next = new Set(before);
      if (isChosen) next.add(flag.id);
      else next.delete(flag.id);
      return next;
    });
  return (
    <>
      <Summary comparisons={comparisons} pair={pair} reading={reading} />
      {isOffered && (
        <Selection
          shown={shown}
          copies={copies}
          target={pair.to.name}
          reason={reason}
          onChoose={setChosen}
          onCopy={() => setOpen({ flags: copies.map(({ flag }) => flag), isReadOnly: false })}
        />
      )}
      {shown.length === 0 ? (
        <NothingShown pair={pair} isFiltered={comparisons.some(differs)} />
      ) : (
        <CompareList
          comparisons={shown}
          pair={pair}
          chosen={reason === undefined ? chosen : undefined}
          onChoose={choose}
          onOpen={(flag) => setOpen({ flags: [flag], isReadOnly: true })}
        />
      )}
      {open !== undefined && (
        <CopyDialog
          {...open}
          pair={pair}
          onClose={(wasCopied) => {
            setOpen(undefined);
            if (wasCopied) setChosen(new Set());
          }}
        />
      )}
    </>
  );
}

type SummaryProps = { comparisons: readonly Comparison[]; pair: Pair; reading: RulesReading };

/** Says how many flags differ, and whether that is final. */
function Summary({ comparisons, pair, reading }: SummaryProps) {
  const { left, beyond, error, readMore, retry } = reading;
  const differing = comparisons.filter(differs).length;
  const unknown = comparisons.filter(({ isUnknown }) => isUnknown).length;
  return (
    <div className={styles.summary}>
      <p aria-live="polite">
        <b>
          {differing} of {comparisons.length}{" "}
          {comparisons.length === 1 ? "flag differs" : "flags differ"}
        </b>{" "}
        between <bdi>{pair.from.name}</bdi> and <bdi>{pair.to.name}</bdi>
        {unknown > 0 && `; the rules of ${unknown} more are not compared yet`}.
      </p>
      {error !== undefined && <ErrorPanel error={error} onRetry={retry} />}
      {left > 0 && error === undefined && (
        <Progress
          label="Flags compared"
          value={comparisons.length - unknown}
          of={comparisons.length}
        />
      )}
      {left === 0 && beyond > 0 && (
        <Button size="small" onPress={readMore}>
          Compare the rules of more flags
        </Button>
      )}
    </div>
  );
}

type SelectionProps = {
  shown: readonly Comparison[];
  copies: readonly Comparison[];
  target: string;
  /** Why nothing can be copied to the target. */
  reason: string | undefined;
  onChoose: (ids: ReadonlySet<string>) => void;
  onCopy: () => void;
};

function Selection({ shown, copies, target, reason, onChoose, onCopy }: SelectionProps) {
  const offered = shown.filter(differs).slice(0, maxChosen);
  const isTooMany = copies.length > maxChosen;
  if (reason !== undefined)
    return (
      <div className={styles.selection}>
        <Button variant="primary" whyNot={reason}>
          Copy to {target}
        </Button>
      </div>
    );
  return (
    <div className={styles.selection}>
      <Button
        size="small"
        isDisabled={offered.length === 0}
        onPress={() => onChoose(new Set(offered.map(({ flag }) => flag.id)))}
      >
        Choose {offered.length < maxChosen ? "all shown" : `the first ${maxChosen}`}
      </Button>
      {copies.length > 0 && (
        <Button size="small" variant="quiet" onPress={() => onChoose(new Set())}>
          Choose none
        </Button>
      )}
      <span className={styles.chosen} aria-live="polite">
        {copies.length} chosen{isTooMany && `, at most ${maxChosen} at a time`}
      </span>
      <Button variant="primary" isDisabled={copies.length === 0 || isTooMany} onPress={onCopy}>
        Copy to {target}
      </Button>
    </div>
  );
}

function NothingShown({ pair, isFiltered }: { pair: Pair; isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState icon={SearchX} title="No flag matches">
        Change the search.
      </EmptyState>
    );
  return (
    <EmptyState icon={CircleCheck} title="Nothing differs">
      Every flag is the same in <bdi>{pair.from.name}</bdi> and <bdi>{pair.to.name}</bdi>, or the
      search excludes it.
    </EmptyState>
  );
}

function NoFlags() {
  return (
    <EmptyState
      icon={Flag}
      title="This project has no flags yet"
      action={<ButtonLink to="/flags">Go to the flags</ButtonLink>}
    >
      Create a flag, and turn it on in one environment. Here you copy its state to another one.
    </EmptyState>
  );
}

function OneEnvironment() {
  const { me } = useKeySession();
  const code = curl(`/api/v1/projects/${me.project.id}/environments`, '{"name":"staging"}');
  if (me.key.environment_only)
    return (
      <EmptyState icon={GitCompareArrows} title="Your key reaches one environment">
        To compare, sign in with a server key that is not limited to its environment.
      </EmptyState>
    );
  return (
    <EmptyState
      icon={GitCompareArrows}
      title="This project has only one environment"
      examples={<CodeBlock title="Create another one over the API" code={code} />}
    >
      A comparison needs two environments, such as staging and production.
    </EmptyState>
  );
}
