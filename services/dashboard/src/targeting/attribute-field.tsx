import { useState } from "react";
import { ComboBox, type ComboBoxProps } from "../ui/combo-box.tsx";
import { useAttributeNames } from "./targeting-queries.ts";

type AttributeFieldProps = Omit<ComboBoxProps, "suggestions" | "placeholder" | "onFocus"> & {
  /** A name that has a field of its own. */
  except?: string;
};

/**
 * A field for the name of an attribute. It suggests those of the project's rules. They need the list of all flags, which
 * can be large, so the field reads it when it gets the focus.
 */
export function AttributeField({ except, ...field }: AttributeFieldProps) {
  const [isOpened, setOpened] = useState(false);
  const names = useAttributeNames(isOpened);
  return (
    <ComboBox
      {...field}
      isLabelHidden
      placeholder="attribute"
      suggestions={names.filter((name) => name !== except)}
      onFocus={() => setOpened(true)}
    />
  );
}
