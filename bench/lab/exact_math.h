#pragma once

namespace partita::lab {

// Functions whose last bit is the same on every machine and with every C library, for what records are made
// of: only operations that IEEE 754 rounds exactly, in a fixed order, none of them fused. Right to 1e-13 of
// the figure, or of 1 where the figure is smaller than that (ExactLog, ExactCosTurns).

double ExactLog(double x);                // REQUIRES: x > 0, and normal.
double ExactExp(double x);                // REQUIRES: x <= 700. Below -700: 0, to 1e-304.
double ExactPow(double x, double power);  // REQUIRES: x > 0, and |power * ln x| <= 100.
double ExactCosTurns(double turns);       // cos(2 pi turns). REQUIRES: 0 <= turns <= 1.
double ExactSinTurns(double turns);       // sin(2 pi turns). REQUIRES: 0 <= turns <= 1.

}  // namespace partita::lab
