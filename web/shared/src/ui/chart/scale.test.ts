// The charts' axis arithmetic.
import { describe, expect, it } from 'vitest';
import { columnAt, labelStride, labelWidth, ticks } from './scale';

describe('ticks', () => {
  it('are round and reach the greatest value', () => {
    expect(ticks(100)).toEqual([0, 25, 50, 75, 100]);
    expect(ticks(14_644)).toEqual([0, 5000, 10_000, 15_000]);
    expect(ticks(0.036)).toEqual([0, 0.01, 0.02, 0.03, 0.04]);
    expect(ticks(7)).toEqual([0, 2, 4, 6, 8]);
  });
  it('keep an axis where there is nothing', () => {
    expect(ticks(0)).toEqual([0, 1]);
    expect(ticks(Number.NaN)).toEqual([0, 1]);
  });
});

describe('columns', () => {
  it('are found by position and held inside', () => {
    expect(columnAt(-5, 300, 30)).toBe(0);
    expect(columnAt(155, 300, 30)).toBe(15);
    expect(columnAt(900, 300, 30)).toBe(29);
    expect(columnAt(10, 0, 30)).toBe(0);
  });
  it('carry as many labels as fit', () => {
    expect(labelStride(600, 30, 60)).toBe(3);
    expect(labelStride(3000, 30, 60)).toBe(1);
  });
});

describe('a label', () => {
  it('is wider in Chinese', () => {
    expect(labelWidth('Nov 15')).toBeCloseTo(41, 0);
    expect(labelWidth('11月15日')).toBeCloseTo(49, 0);
  });
});
