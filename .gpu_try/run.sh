(timeout 70 python3 .gpu_try/race.py > $OUT/tried.log 2>&1) &
(timeout 90 python3 benchmarks/gpu.py --check --ops grouped_mm,attention --budget 80 --out $OUT/c > $OUT/check.log 2>&1) &
n=0
for names in "products attention" "recurrent streams_and_memory random_numbers" "compiled linear_algebra data"; do
  n=$((n+1)); (PYTHONUNBUFFERED=1 timeout 110 python3 tests/device_programs.py $names > $OUT/p$n.log 2>&1) &
done
bash benchmarks/gpu_session.sh measure > $OUT/measure.txt 2>&1
tail -n 4 $OUT/tried.log | cut -c1-200; tail -n 6 $OUT/check.log | cut -c1-700; cat $OUT/p1.log $OUT/p2.log $OUT/p3.log | cut -c1-500
cat $OUT/measure.txt
