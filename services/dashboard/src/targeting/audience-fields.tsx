import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useAudiences } from "../references/audience-queries.ts";
import { Select } from "../ui/fields.tsx";
import styles from "./targeting.module.css";

type AudienceFieldsProps = {
  /** The key of the audience, or an empty text before one is chosen. */
  audience: string;
  error: string | undefined;
  onChange: (audience: string) => void;
};

/** The choice of an audience, with a link to its page. */
export function AudienceFields({ audience, error, onChange }: AudienceFieldsProps) {
  const { data } = useAudiences();
  const options = useMemo(
    () => (data ?? []).map(({ key, name }) => ({ value: key, label: key, note: name })),
    [data],
  );
  return (
    <div className={styles.reference}>
      <Select
        label="In audience"
        value={audience}
        onChange={onChange}
        options={options}
        error={error}
      />
      <p className={styles.note}>
        {data?.length === 0 && (
          <>
            This project has no audiences. <Link to="/audiences">Create one</Link> first.
          </>
        )}
        {options.some(({ value }) => value === audience) && (
          <Link to="/audiences/$audienceKey" params={{ audienceKey: audience }}>
            Open the audience {audience}
          </Link>
        )}
      </p>
    </div>
  );
}
