/** A line of a chart. */
export interface ChartLine {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** The name of its colour, such as `allowed` for `--chart-allowed`. */
  readonly colour: 'allowed' | 'refused' | 'near' | 'other';
  readonly filled?: boolean;
  readonly dashed?: boolean;
}
