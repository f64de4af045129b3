import { memo, useState } from "react";
import {
  Slider as AriaSlider,
  TextField as AriaTextField,
  FieldError,
  Input,
  Label,
  SliderThumb,
  SliderTrack,
} from "react-aria-components";
import fields from "./fields.module.css";
import { parsePercentage, percentageHint } from "./parse-number.ts";
import styles from "./slider.module.css";

/** A percentage, with the text of its field while that is not a percentage. */
export type TypedPercentage = {
  rollout_percentage: number;
  invalidPercentage: string | undefined;
};

type PercentageSliderProps = {
  label: string;
  value: number;
  /** The text to show instead of the value, as an error. */
  invalidText: string | undefined;
  error?: string | undefined;
  isReadOnly?: boolean;
  onChange: (typed: TypedPercentage) => void;
};

/**
 * A percentage from 0 to 100, set by a slider or as a number. Number fields of browsers and libraries drop characters
 * that they do not expect, so that `2.5` becomes 25. This field keeps the text and shows an error.
 */
export const PercentageSlider = memo(function PercentageSlider(props: PercentageSliderProps) {
  const { label, value, invalidText, isReadOnly = false, onChange } = props;
  const error = invalidText === undefined ? props.error : percentageHint;
  // A text such as `12.0` stays as it was typed, because further digits can follow.
  const [typed, setTyped] = useState("");
  const text = parsePercentage(typed, navigator.language) === value ? typed : String(value);
  const type = (text: string) => {
    setTyped(text);
    const parsed = parsePercentage(text, navigator.language);
    onChange({
      rollout_percentage: parsed ?? value,
      invalidPercentage: parsed === undefined ? text : undefined,
    });
  };
  return (
    <AriaTextField
      aria-label={`${label}, in percent`}
      className={fields.field ?? ""}
      value={invalidText ?? text}
      onChange={type}
      isReadOnly={isReadOnly}
      isInvalid={error !== undefined}
      validationBehavior="aria"
    >
      <div className={styles.row}>
        <AriaSlider
          className={styles.slider ?? ""}
          minValue={0}
          maxValue={100}
          // With whole steps, the thumb would show 3 for 2.5.
          step={Number.isInteger(value) ? 1 : 0.01}
          value={value}
          isDisabled={isReadOnly}
          onChange={(next) =>
            onChange({ rollout_percentage: next as number, invalidPercentage: undefined })
          }
        >
          <Label className={fields.label ?? ""}>{label}</Label>
          <SliderTrack className={styles.track ?? ""}>
            {({ state }) => (
              <>
                <div
                  className={styles.fill}
                  style={{ width: `${state.getThumbPercent(0) * 100}%` }}
                />
                <SliderThumb className={styles.thumb ?? ""} />
              </>
            )}
          </SliderTrack>
        </AriaSlider>
        <div className={styles.number}>
          <Input className={fields.input ?? ""} inputMode="decimal" />
          <span aria-hidden>%</span>
        </div>
      </div>
      <FieldError className={fields.error ?? ""}>{error}</FieldError>
    </AriaTextField>
  );
});
