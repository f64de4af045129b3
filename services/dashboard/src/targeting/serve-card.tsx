import { Select } from "../ui/fields.tsx";
import { Card } from "../ui/panels.tsx";
import type { Draft } from "./draft.ts";
import { useEditor } from "./editor-context.ts";
import { ServeEditor } from "./serve-editor.tsx";
import styles from "./targeting.module.css";

/** The choice of no variation. No key of a variation begins with a hyphen. */
const callersDefault = "-default";

/** The served variations of a typed flag, and the variation of all other users. */
export function ServeCard({ draft }: { draft: Draft }) {
  const { edit, base, variations } = useEditor();
  const { serve, off_variation: off } = draft;
  if (serve === undefined) return null;
  return (
    <Card title="Values">
      <div className={styles.stack}>
        <ServeEditor
          label="Users for whom the flag is on get"
          variations={variations}
          serve={serve}
          before={base.serve}
          onChange={(changed) =>
            changed !== undefined && edit((before) => ({ ...before, serve: changed }))
          }
        />
        <Select
          label="All others get"
          value={off ?? callersDefault}
          onChange={(chosen) =>
            edit((before) => ({
              ...before,
              off_variation: chosen === callersDefault ? null : chosen,
            }))
          }
          options={[
            ...variations,
            {
              value: callersDefault,
              label: "The application's default",
              note: "the fallback in its code",
            },
          ]}
        />
      </div>
    </Card>
  );
}
