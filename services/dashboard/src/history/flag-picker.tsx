import { ChevronDown } from "lucide-react";
import { useState } from "react";
import {
  Button,
  ComboBox,
  Group,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
} from "react-aria-components";
import { useFlags } from "../flags/flag-queries.ts";
import fields from "../ui/fields.module.css";
import overlay from "../ui/overlay.module.css";
import styles from "./history.module.css";

/** Maximum number of suggested flags. A project can have thousands; typing narrows the list. */
const maxOffered = 50;

type FlagPickerProps = {
  chosen: string | undefined;
  chosenKey: string | undefined;
  onChoose: (id: string | undefined) => void;
};

/** Chooses one flag by its key. `chosenKey` is the key of a chosen flag that may be deleted. */
export function FlagPicker({ chosen, chosenKey, onChoose }: FlagPickerProps) {
  const { data: flags = [] } = useFlags();
  const [typed, setTyped] = useState<string>();
  const label = flags.find(({ id }) => id === chosen)?.key ?? chosenKey ?? "a deleted flag";
  const text = typed ?? (chosen === undefined ? "" : label);
  const words = (typed ?? "").toLowerCase();
  const offered = flags.filter(({ key }) => key.toLowerCase().includes(words)).slice(0, maxOffered);
  const choose = (id: string | undefined) => {
    setTyped(undefined);
    if (id !== chosen) onChoose(id);
  };
  return (
    <ComboBox
      className={styles.picker ?? ""}
      items={offered}
      inputValue={text}
      onInputChange={setTyped}
      selectedKey={chosen ?? null}
      onSelectionChange={(key) => key !== null && choose(String(key))}
      onBlur={() => (typed === "" ? choose(undefined) : setTyped(undefined))}
      menuTrigger="focus"
    >
      <Label className="visually-hidden">Flag</Label>
      <Group className={styles.pickerGroup ?? ""}>
        <Input className={fields.input ?? ""} placeholder="All flags" spellCheck="false" />
        <Button className={styles.pickerOpen ?? ""} aria-label="Show flags">
          <ChevronDown size={16} aria-hidden />
        </Button>
      </Group>
      <Popover className={overlay.popover ?? ""}>
        <ListBox<{ id: string; key: string }> className={overlay.list ?? ""}>
          {({ id, key }) => (
            <ListBoxItem id={id} textValue={key} className={overlay.option ?? ""}>
              <code>{key}</code>
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </ComboBox>
  );
}
