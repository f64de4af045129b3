import {
  Slider as AriaSlider,
  Input,
  Label,
  NumberField,
  SliderThumb,
  SliderTrack,
} from "react-aria-components";
import fields from "./fields.module.css";
import styles from "./slider.module.css";

type PercentageSliderProps = { label: string; value: number; onChange: (value: number) => void };

/** A percentage from 0 to 100, set by a slider or as a number. */
export function PercentageSlider({ label, value, onChange }: PercentageSliderProps) {
  return (
    <div className={styles.row}>
      <AriaSlider
        className={styles.slider ?? ""}
        minValue={0}
        maxValue={100}
        value={value}
        onChange={(next) => onChange(next as number)}
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
      <NumberField
        aria-label={`${label}, in percent`}
        className={styles.number ?? ""}
        minValue={0}
        maxValue={100}
        value={value}
        onChange={(next) => Number.isNaN(next) || onChange(next)}
      >
        <Input className={fields.input ?? ""} />
        <span aria-hidden>%</span>
      </NumberField>
    </div>
  );
}
