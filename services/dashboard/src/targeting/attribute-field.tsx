import { useState } from "react";
import { ComboBox, type ComboBoxProps } from "../ui/combo-box.tsx";
import { useAttributeNames } from "./targeting-queries.ts";

type AttributeFieldProps = Omit<ComboBoxProps, "suggestions" | "onFocus"> & {
  /** An attribute with a separate field. It is not suggested. */
  except?: string;
};

/**
 * A field for the name of an attribute. It suggests the attributes of the project's rules. These need the list of all
 * flags, which can be large, so the field reads it on focus.
 */
export function AttributeField({ except, ...field }: AttributeFieldProps) {
  const [isOpened, setOpened] = useState(false);
  const names = useAttributeNames(isOpened);
  return (
    <ComboBox
      isLabelHidden
      placeholder="attribute"
      {...field}
      suggestions={names.filter((name) => name !== except)}
      onFocus={() => setOpened(true)}
    />
  );
}
