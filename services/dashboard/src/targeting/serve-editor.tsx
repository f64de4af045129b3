import { Plus, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { movedText, serveText } from "../state/serve.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { type Option, Select } from "../ui/fields.tsx";
import { Menu } from "../ui/menu.tsx";
import { PercentageSlider } from "../ui/slider.tsx";
import { useNextFocus } from "../ui/use-next-focus.ts";
import type { DraftServe, DraftShare } from "./draft.ts";
import { splitOf, withEqualWeights, withoutVariation, withWeight } from "./split.ts";
import styles from "./targeting.module.css";

/** Choices beside the variations. No key of a variation begins with a hyphen. */
const ofFlag = "-flag";
const split = "-split";
/** Names the button that adds a share, among the keys of the shares. */
const addName = "-add";

type ServeEditorProps = {
  label: string;
  variations: readonly Option<string>[];
  /** Undefined for a rule that serves the same as the flag. */
  serve: DraftServe | undefined;
  /** The stored choice. Undefined for a new rule. */
  before: DraftServe | undefined;
  /** The choice of the flag, in the editor of a rule. */
  inherited?: DraftServe;
  error?: string | undefined;
  onChange: (serve: DraftServe | undefined) => void;
};

/** Chooses the served variations: one, or a split by percentages that add up to 100. */
export function ServeEditor(props: ServeEditorProps) {
  const { label, variations, serve, before, inherited, error, onChange } = props;
  const choose = (chosen: string) => {
    if (chosen === ofFlag) return onChange(undefined);
    if (chosen !== split) return onChange({ variation: chosen });
    const current = serve ?? inherited ?? { variation: variations[0]?.value ?? "" };
    return onChange({ split: splitOf(current, keysOf(variations)) });
  };
  return (
    <div className={styles.stack}>
      <Select
        label={label}
        value={choiceOf(serve)}
        onChange={choose}
        error={error}
        options={[
          ...(inherited === undefined
            ? []
            : [{ value: ofFlag, label: "As the flag", note: serveText(inherited) }]),
          ...variations,
          ...(variations.length > 1
            ? [{ value: split, label: "A split", note: "several variations, by percentages" }]
            : []),
        ]}
      />
      {serve !== undefined && "split" in serve && (
        <SplitEditor
          shares={serve.split}
          variations={variations}
          onChange={(shares) => onChange({ split: shares })}
        />
      )}
      <Moved before={before} after={serve ?? inherited} />
    </div>
  );
}

const keysOf = (variations: readonly Option<string>[]) => variations.map(({ value }) => value);

function choiceOf(serve: DraftServe | undefined): string {
  if (serve === undefined) return ofFlag;
  return "split" in serve ? split : serve.variation;
}

type MovedProps = {
  before: DraftServe | undefined;
  after: DraftServe | undefined;
};

/** Time without a change after which screen readers announce the effect of the edits. */
const settledMs = 400;

/** Says before saving how many users get another variation, once per movement of a slider and not at each step. */
function Moved({ before, after }: MovedProps) {
  const text = before === undefined || after === undefined ? undefined : movedText(before, after);
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), settledMs);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <p role="status" className={styles.hint}>
      {settled}
    </p>
  );
}

type SplitEditorProps = {
  shares: readonly DraftShare[];
  variations: readonly Option<string>[];
  onChange: (shares: DraftShare[]) => void;
};

/** The edits of one field: the shares before the first of them, and after the last. */
type Editing = {
  variation: string;
  before: readonly DraftShare[];
  after: readonly DraftShare[];
};

function SplitEditor({ shares, variations, onChange }: SplitEditorProps) {
  // All edits of one field start from the same shares, so that an intermediate 0 or 100 loses no proportion.
  const editing = useRef<Editing>(undefined);
  const change = (variation: string, weight: number, invalidWeight: string | undefined) => {
    const last = editing.current;
    const isSameEdit = last?.variation === variation && last.after === shares;
    const before = isSameEdit ? last.before : shares;
    const after = withWeight(before, variation, weight).map((share) =>
      share.variation === variation && invalidWeight !== undefined
        ? { ...share, invalidWeight }
        : share,
    );
    editing.current = { variation, before, after };
    onChange(after);
  };
  const { part, focusNext } = useNextFocus<HTMLFieldSetElement>();
  const remove = (variation: string) => {
    focusNext(addName);
    onChange(withoutVariation(shares, variation));
  };
  const add = (variation: string) => {
    focusNext(variation);
    onChange([...shares, { variation, weight: 0 }]);
  };
  const unused = variations.filter(
    ({ value }) => !shares.some(({ variation }) => variation === value),
  );
  return (
    <fieldset ref={part} className={styles.split}>
      <legend className={styles.legend}>Shares, together 100 %</legend>
      {shares.map(({ variation, weight, invalidWeight }) => (
        <div key={variation} data-focus={variation} className={styles.share}>
          <PercentageSlider
            label={variation}
            value={weight}
            invalidText={invalidWeight}
            isReadOnly={shares.length === 1}
            onChange={({ rollout_percentage: next, invalidPercentage }) =>
              change(variation, next, invalidPercentage)
            }
          />
          <IconButton
            icon={X}
            label={`Remove ${variation} from the split`}
            size="small"
            isDisabled={shares.length < 2}
            onPress={() => remove(variation)}
          />
        </div>
      ))}
      <div className={styles.buttons}>
        <Button size="small" onPress={() => onChange(withEqualWeights(shares))}>
          Equal shares
        </Button>
        <div data-focus={addName}>
          <AddShare unused={unused} onAdd={add} />
        </div>
      </div>
    </fieldset>
  );
}

type AddShareProps = {
  unused: readonly Option<string>[];
  onAdd: (variation: string) => void;
};

/** The menu of the variations without a share. */
function AddShare({ unused, onAdd }: AddShareProps) {
  if (unused.length === 0) return null;
  return (
    <Menu
      label="Add a variation to the split"
      trigger={
        <Button size="small">
          <Plus size={14} aria-hidden /> Add variation
        </Button>
      }
      entries={unused.map(({ value }) => ({
        id: value,
        label: value,
        onAction: () => onAdd(value),
      }))}
    />
  );
}
