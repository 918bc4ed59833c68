/** The bits of an address in groups of 16: two for IPv4, eight for IPv6. */
export type AddressParts = readonly number[];

/** Values per network of one address family. There is one map per prefix length, and few lengths are in use. */
export class PrefixTable<T> {
  private readonly byLength = new Map<number, Map<string | number, T>>();
  /** The lengths in use, the longest first. */
  private lengths: readonly number[] = [];

  set(parts: AddressParts, length: number, value: T): void {
    let values = this.byLength.get(length);
    if (values === undefined) {
      this.byLength.set(length, (values = new Map()));
      this.sortLengths();
    }
    values.set(prefixOf(parts, length), value);
  }

  delete(parts: AddressParts, length: number): void {
    const values = this.byLength.get(length);
    values?.delete(prefixOf(parts, length));
    if (values?.size !== 0) return;
    this.byLength.delete(length);
    this.sortLengths();
  }

  /** The value of the smallest network that contains an address. */
  find(address: AddressParts): T | undefined {
    for (const length of this.lengths) {
      const value = this.byLength.get(length)!.get(prefixOf(address, length));
      if (value !== undefined) return value;
    }
    return undefined;
  }

  private sortLengths(): void {
    this.lengths = [...this.byLength.keys()].sort((one, other) => other - one);
  }
}

/** The leading bits: a number for IPv4, a text with one character per 16 bits for IPv6. */
function prefixOf(parts: AddressParts, length: number): string | number {
  if (parts.length === 2) return length === 0 ? 0 : ((parts[0]! << 16) | parts[1]!) & (-1 << (32 - length));
  const whole = length >> 4;
  const rest = length & 15;
  let prefix = '';
  for (let index = 0; index < whole; index++) prefix += String.fromCharCode(parts[index]!);
  return rest === 0 ? prefix : prefix + String.fromCharCode(parts[whole]! & (0xffff << (16 - rest)));
}
