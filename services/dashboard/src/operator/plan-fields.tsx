import { useState } from "react";
import type { PlanLimits } from "../api/schema.d.ts";
import { Select, TextField } from "../ui/fields.tsx";
import styles from "./operator.module.css";
import { isSmaller, type KnownPlan, limitLabels, limitText } from "./plans.ts";

/** The option that shows a field for the name of a plan. */
const other = "";

/** Fields to choose a known plan, or to enter the name of another one. */
export function PlanFields({
  plans,
  plan,
  onChange,
  error,
}: {
  plans: readonly KnownPlan[];
  plan: string;
  onChange: (plan: string) => void;
  error?: string | undefined;
}) {
  const [isOther, setOther] = useState(false);
  const choose = (chosen: string) => {
    setOther(chosen === other);
    onChange(chosen);
  };
  return (
    <>
      <Select
        label="Plan"
        value={isOther ? other : plan}
        onChange={choose}
        options={[
          ...plans.map(({ name }) => ({ value: name, label: name })),
          { value: other, label: "Another plan…" },
        ]}
      />
      {isOther && (
        <TextField
          label="Name of the plan"
          value={plan}
          onChange={onChange}
          isCode
          isRequired
          autoFocus
          description="A plan that PLANS of this installation defines."
          error={error}
        />
      )}
    </>
  );
}

/** The limits of a plan, beside those of the current plan if the organization has one. */
export function PlanComparison({
  present,
  next,
}: {
  present?: { name: string; limits: PlanLimits };
  next: { name: string; plan: KnownPlan | undefined };
}) {
  return (
    <div>
      <table className={styles.limits}>
        <thead>
          <tr>
            <th scope="col">Limit</th>
            {present !== undefined && <th scope="col">{present.name} (now)</th>}
            <th scope="col">{next.name === "" ? "Another plan" : next.name}</th>
          </tr>
        </thead>
        <tbody>
          {limitLabels.map(({ key, label }) => {
            const limit = next.plan?.limits[key];
            return (
              <tr key={key}>
                <th scope="row">{label}</th>
                {present !== undefined && <td>{limitText(present.limits[key])}</td>}
                <td>
                  {limit === undefined ? "Not known yet" : limitText(limit)}
                  {limit !== undefined &&
                    present !== undefined &&
                    isSmaller(limit, present.limits[key]) && (
                      <span className={styles.smaller}> smaller</span>
                    )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {next.plan?.isReported === false && (
        <p className={styles.note}>
          These are the limits of a new installation. PLANS of this one may set others.
        </p>
      )}
    </div>
  );
}
