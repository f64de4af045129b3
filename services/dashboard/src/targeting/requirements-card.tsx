import { Link } from "@tanstack/react-router";
import { Plus, X } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import type { Dependent, Requirement } from "../api/schema.d.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { useFlags } from "../flags/flag-queries.ts";
import { pathText } from "../references/dependents.ts";
import { useDependents } from "../references/use-dependents.ts";
import { requirementText } from "../state/words.ts";
import { Badge } from "../ui/badge.tsx";
import { Button, IconButton } from "../ui/button.tsx";
import { Card } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { type Draft, maxRequirements } from "./draft.ts";
import { useEditor } from "./editor-context.ts";
import { type Problems, requirementKey } from "./problems.ts";
import { RequirementFields } from "./requirement-fields.tsx";
import { type RequiredFlag, requirementTree } from "./requirement-tree.ts";
import styles from "./targeting.module.css";

type Requires = readonly Requirement[];
const none: Requires = [];

/** The required flags of the flag with their own requirements, and the flags that require this one. */
export function RequirementsCard({ draft, problems }: { draft: Draft; problems: Problems }) {
  const { requires = none } = draft;
  return (
    <Card title="Required flags">
      <div className={styles.stack}>
        <p className={styles.note}>
          {requires.length === 0
            ? "The flag requires no other flag. With a required flag, it is off for each user who gets another value of that flag."
            : "The flag is off for each user who gets another value of one of these flags."}
        </p>
        <RequirementList requires={requires} problems={problems} />
        <Chain requires={requires} />
        <Dependents />
      </div>
    </Card>
  );
}

function RequirementList({ requires, problems }: { requires: Requires; problems: Problems }) {
  const { edit } = useEditor();
  const [added, setAdded] = useState<number>();
  const adder = useRef<HTMLDivElement>(null);
  const change = (changed: (before: Requires) => Requirement[]) =>
    edit((draft) => withRequires(draft, changed(draft.requires ?? none)));
  const remove = (at: number) => {
    change((before) => before.toSpliced(at, 1));
    setAdded(undefined);
    adder.current?.querySelector("button")?.focus();
  };
  return (
    <>
      {requires.map((requirement, at) => (
        <fieldset
          // biome-ignore lint/suspicious/noArrayIndexKey: the rows are edited in place and have no other identity.
          key={at}
          className={styles.condition}
          aria-label={`Required flag ${at + 1}`}
        >
          <RequirementFields
            requirement={requirement}
            errors={{
              flag: problems.get(requirementKey("flag", at)),
              is: problems.get(requirementKey("is", at)),
            }}
            autoFocus={at === added}
            onChange={(next) => change((before) => before.with(at, next))}
          />
          <IconButton
            icon={X}
            label={`Remove required flag ${at + 1}`}
            size="small"
            onPress={() => remove(at)}
          />
        </fieldset>
      ))}
      <div ref={adder}>
        <Button
          size="small"
          onPress={() => {
            setAdded(requires.length);
            change((before) => [...before, { flag: "", is: "on" }]);
          }}
          isDisabled={requires.length >= maxRequirements}
        >
          <Plus size={14} aria-hidden /> Add required flag
        </Button>
      </div>
    </>
  );
}

/** A state without required flags lacks the member. */
function withRequires({ requires: _, ...draft }: Draft, requires: Requirement[]): Draft {
  return requires.length === 0 ? draft : { ...draft, requires };
}

/** The tree of required flags. It is shown only if one of them requires further ones. */
function Chain({ requires }: { requires: Requires }) {
  const { environment } = useFlagInPage();
  const { data: flags } = useFlags(requires.length > 0);
  const tree = useMemo(
    () => requirementTree(flags ?? [], environment.id, requires),
    [flags, environment.id, requires],
  );
  if (!tree.some((required) => required.requires.length > 0)) return null;
  return (
    <section aria-label="Chain of required flags">
      <h3>Chain of required flags</h3>
      <Tree flags={tree} />
      <p className={styles.note}>Rules of these flags can require further flags.</p>
    </section>
  );
}

function Tree({ flags }: { flags: readonly RequiredFlag[] }) {
  return (
    <ul className={styles.tree}>
      {flags.map(({ requirement, enabled, requires, isRepeated }) => (
        <li key={requirementText(requirement)}>
          <FlagLink flagKey={requirement.flag} /> {requirementText(requirement)}{" "}
          {enabled !== undefined && (
            <Badge tone={enabled ? "on" : "neutral"}>{enabled ? "Now on" : "Now off"}</Badge>
          )}
          {isRepeated && <span className={styles.note}> shown above</span>}
          {requires.length > 0 && <Tree flags={requires} />}
        </li>
      ))}
    </ul>
  );
}

/** The flags that require this one in the environment of the page. */
function Dependents() {
  const { flag, environment } = useFlagInPage();
  const query = useDependents(flag);
  return (
    <QueryView query={query} label="Loading the flags that require this one">
      {({ dependents, total }) => (
        <DependentList
          dependents={dependents.filter(inEnvironment(environment.id))}
          isComplete={total === dependents.length}
        />
      )}
    </QueryView>
  );
}

const inEnvironment = (id: string) => (dependent: Dependent) => dependent.environment_id === id;

/** The API returns a part of very many dependents. */
type DependentListProps = { dependents: readonly Dependent[]; isComplete: boolean };

function DependentList({ dependents, isComplete }: DependentListProps) {
  const { flag, environment } = useFlagInPage();
  if (dependents.length === 0 && isComplete)
    return (
      <p className={styles.note}>
        No flag requires this one in <bdi>{environment.name}</bdi>.
      </p>
    );
  return (
    <section aria-label="Flags that require this one">
      <h3>Flags that require this one</h3>
      <ul className={styles.tree}>
        {dependents.map(({ flag_id, flag_key, enabled, requires, is }) => (
          <li key={flag_id}>
            <FlagLink flagKey={flag_key} />{" "}
            <Badge tone={enabled ? "on" : "neutral"}>{enabled ? "Now on" : "Now off"}</Badge>{" "}
            <span className={styles.note}>
              {requires.length > 2 ? pathText(requires) : requirementText({ flag: flag.key, is })}
            </span>
          </li>
        ))}
      </ul>
      {!isComplete && <p className={styles.note}>There are further flags.</p>}
    </section>
  );
}

const FlagLink = ({ flagKey }: { flagKey: string }) => (
  <Link to="/flags/$flagKey" params={{ flagKey }}>
    <code>{flagKey}</code>
  </Link>
);
