/** The text of a picture, as the bundler takes it. */
declare module '*.svg' {
  const text: string;
  export default text;
}
